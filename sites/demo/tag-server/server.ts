import { createServer, type Server } from 'node:http';
import { buildAge } from './age.ts';
import { COLLECT_PATHS, collect, collectPreflight, recordRequest } from './collect.ts';
import { type Exchange, openExchange, sendAnswer } from './exchange.ts';
import { health, isHealthPath } from './health.ts';
import { buildMemos } from './memos.ts';
import { preview } from './preview.ts';
import { forwardToPreview, isPreviewPath } from './preview-proxy.ts';
import { isUnauthorised } from './preview-session.ts';
import { buildRecorder } from './recorder.ts';
import { SCRIPT_PATHS, script } from './scripts.ts';
import type { TagServerSettings } from './settings.ts';

/** Shows the requests that the stand-in received. The real image has no such path. */
const EVENTS_PATH = '/tagyard-demo/events';
/** `POST ?days=13` adds 13 days to the stand-in's uptime. */
const AGE_PATH = '/tagyard-demo/age';
/** The edge forwards detection signals to this path. */
const DETECTION_PATH = '/tagyard/detection';

/** The origin of the Tag Manager interface, which sends headers of its own. */
const INTERFACE_ORIGIN = 'https://tagmanager.googleusercontent.com';

/** The tag server in either role, over plain HTTP. Like the real server, it closes idle connections after 5 s. */
export function buildTagServer(settings: TagServerSettings): Server {
  const age = buildAge();
  const recorder = buildRecorder();
  const previewDeps = { config: settings.config, memos: buildMemos(settings) };

  async function route(exchange: Exchange): Promise<void> {
    const { path, method, request } = exchange;
    if (isHealthPath(path) && (method === 'GET' || method === 'HEAD')) {
      return health(exchange, age);
    }
    if (path === AGE_PATH && method === 'POST') {
      age.add(Number(new URLSearchParams(exchange.query).get('days')));
      return sendAnswer(exchange, 200, { body: 'ok' });
    }
    if (method === 'OPTIONS' && request.headers.origin === INTERFACE_ORIGIN)
      return interfacePreflight(exchange);
    if (settings.role === 'preview') return await preview(exchange, previewDeps);
    if (isPreviewPath(path) && settings.previewServerUrl !== null) {
      return await forwardToPreview(exchange, settings.previewServerUrl);
    }
    if (isUnauthorised(request, settings.config)) return sendAnswer(exchange, 401);
    if (COLLECT_PATHS.has(path)) {
      return method === 'OPTIONS' ? collectPreflight(exchange) : await collect(exchange, recorder);
    }
    if (SCRIPT_PATHS.has(path) && method === 'GET') return script(exchange);
    if (path === DETECTION_PATH && method === 'POST') {
      if (await recordRequest(exchange, recorder)) exchange.response.writeHead(204).end();
      return;
    }
    if (path === EVENTS_PATH && method === 'GET') {
      return sendAnswer(exchange, 200, {
        type: 'application/json',
        body: JSON.stringify(recorder.read()),
        headers: { 'cache-control': 'no-store' },
      });
    }
    // No client claims the path.
    sendAnswer(exchange, 400);
  }

  const server = createServer((request, response) => {
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

function interfacePreflight(exchange: Exchange): void {
  sendAnswer(exchange, 200, {
    headers: {
      'access-control-allow-origin': INTERFACE_ORIGIN,
      'access-control-allow-headers': 'x-gtm-auth, x-gtm-preview, x-gtm-debug',
      'access-control-allow-methods': 'GET',
      'access-control-max-age': '86400',
    },
  });
}
