import type { Server } from 'node:http';
import { type Age, buildAge } from './age.ts';
import {
  COLLECT_PATHS,
  type CollectDeps,
  claim,
  collect,
  collectPreflight,
  isClaimed,
  recordRequest,
} from './collect.ts';
import { ContainerUnavailable, fetchContainer } from './container.ts';
import { type Exchange, openExchange, sendAnswer } from './exchange.ts';
import { health, isHealthCheck } from './health.ts';
import { buildMemos } from './memos.ts';
import { http } from './node/modules.ts';
import { NO_POLICY, type TagPolicy } from './policy/policy.ts';
import { preview, USER_INTERFACE } from './preview.ts';
import { forwardToPreview, isPreviewPath } from './preview-proxy.ts';
import { draftOf } from './preview-session.ts';
import { buildRecorder, type Recorder } from './recorder.ts';
import { isScriptPath, isServiceWorkerPath, script, serviceWorker } from './scripts.ts';
import type { TagServerSettings } from './settings.ts';

/** Shows the requests that the stand-in received. The real image has no such path. */
const EVENTS_PATH = '/tagyard-demo/events';
/** `POST ?days=13` adds 13 days to the stand-in's uptime. */
const AGE_PATH = '/tagyard-demo/age';
/** The edge forwards detection signals to this path. */
const DETECTION_PATH = '/tagyard/detection';

/** An origin of Tag Manager's interface, whose requests have `x-gtm-…` headers and credentials. */
const INTERFACE_ORIGIN = 'https://tagmanager.googleusercontent.com';

/** The age of a server whose container was fetched just now; the preview role fetches none. */
function ageOf({ role }: TagServerSettings): Age {
  const age = buildAge();
  if (role === 'processing') age.refresh();
  return age;
}

/**
 * The tag server in either role, over plain HTTP. Like the real server, it closes idle connections after 5 s. `print`
 * gets the lines that its templates log.
 */
export function buildTagServer(
  settings: TagServerSettings,
  age = ageOf(settings),
  policy: TagPolicy = NO_POLICY,
  print: (line: string) => void = () => undefined,
): Server {
  const recorder = buildRecorder();
  const previewDeps = { ...settings, memos: buildMemos(settings) };

  async function route(exchange: Exchange): Promise<void> {
    const { path, method } = exchange;
    if (path === AGE_PATH && method === 'POST') {
      age.add(Number(new URLSearchParams(exchange.query).get('days')));
      return sendAnswer(exchange, 200, { body: 'ok' });
    }
    // Before the health check, because the processing role forwards a preview path even if it ends with /healthz.
    if (settings.previewServerUrl !== null && settings.role === 'processing' && isPreviewPath(path)) {
      return await forwardToPreview(exchange, settings.previewServerUrl);
    }
    if (isInterfacePreflight(exchange, settings)) return interfacePreflight(exchange);
    if (isHealthCheck(exchange)) return health(exchange, age);
    if (settings.role === 'preview') return await preview(exchange, previewDeps);
    const refused = await refusedDraft(exchange, settings);
    if (refused !== null) return sendAnswer(exchange, refused);
    return await serveClients(exchange, settings, { recorder, policy, print });
  }

  const server = http.createServer((request, response) => {
    const exchange = openExchange(request, response);
    route(exchange).catch((error: unknown) => {
      console.error('Request failed:', error);
      if (response.headersSent) response.destroy();
      else sendAnswer(exchange, 500);
    });
  });
  server.keepAliveTimeout = 5_000;
  server.setTimeout(120_000);
  return server;
}

/** Serves the request by the first Tag Manager client that claims the path. Answers 400 if none does. */
async function serveClients(
  exchange: Exchange,
  { config }: TagServerSettings,
  { recorder, ...deps }: { readonly recorder: Recorder } & CollectDeps,
): Promise<void> {
  const { path, method } = exchange;
  if (COLLECT_PATHS.has(path) || isClaimed(path)) {
    if (method === 'OPTIONS') return collectPreflight(exchange);
    return await (isClaimed(path) ? claim(exchange, recorder) : collect(exchange, recorder, deps));
  }
  if (method === 'GET' && isScriptPath(path, config.id)) return script(exchange);
  if (method === 'GET' && isServiceWorkerPath(path)) return serviceWorker(exchange);
  if (path === DETECTION_PATH && method === 'POST') {
    if ((await recordRequest(exchange, recorder)) !== null) exchange.response.writeHead(204).end();
    return;
  }
  if (path === EVENTS_PATH && method === 'GET') {
    return sendAnswer(exchange, 200, {
      type: 'application/json',
      body: JSON.stringify(recorder.read()),
      headers: { 'cache-control': 'no-store' },
    });
  }
  sendAnswer(exchange, 400);
}

/** Fetches `server.js` of the draft, if the request has a debug session. Returns the status to answer if that fails. */
async function refusedDraft({ request }: Exchange, settings: TagServerSettings): Promise<number | null> {
  const draft = draftOf(request, settings.config);
  if (draft === null) return null;
  if (draft === 'unauthorised') return 401;
  if (draft === 'malformed') return 500;
  try {
    await fetchContainer(settings, draft);
    return null;
  } catch (error) {
    if (!(error instanceof ContainerUnavailable)) throw error;
    console.error(error.message);
    return error.status;
  }
}

/** Both roles answer preflights of `INTERFACE_ORIGIN`, the preview role also those of `USER_INTERFACE`. */
function isInterfacePreflight({ method, request }: Exchange, { role }: TagServerSettings): boolean {
  const { origin } = request.headers;
  if (method !== 'OPTIONS') return false;
  return origin === INTERFACE_ORIGIN || (role === 'preview' && origin === USER_INTERFACE);
}

function interfacePreflight({ request, response }: Exchange): void {
  const { origin = '' } = request.headers;
  response
    .writeHead(204, {
      'access-control-allow-origin': origin,
      ...(origin === INTERFACE_ORIGIN ? { 'access-control-allow-credentials': 'true' } : {}),
      'access-control-allow-headers': 'x-gtm-auth, x-gtm-preview, x-gtm-debug',
      'access-control-allow-methods': 'GET',
      'access-control-max-age': '86400',
    })
    .end();
}
