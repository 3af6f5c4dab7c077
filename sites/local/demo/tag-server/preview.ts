import { type DebugSources, debugResource } from './debug-proxy.ts';
import { type Exchange, readBody, sendAnswer } from './exchange.ts';
import type { Memos } from './memos.ts';
import { debugCookie, debugCookies, newSession, previewsIn } from './preview-session.ts';
import type { ContainerConfig } from './settings.ts';

interface PreviewDeps extends DebugSources {
  readonly config: ContainerConfig;
  readonly memos: Memos;
}

/** The origin of Tag Manager's user interface, which asks for the state of previews. */
export const USER_INTERFACE = 'https://tagmanager.google.com';

/** Keeps a page from running the answer as a script. */
const JSON_PREFIX = ")]}'\n";
const JSON_HEADERS = {
  'cache-control': 'no-store',
  'content-disposition': 'attachment; filename="f.txt"',
  'x-content-type-options': 'nosniff',
};
const NOT_FOUND = { body: 'Not Found' };
const JSON_TYPE = 'application/json; charset=utf-8';

/** Serves the preview role's paths, below any prefix; other paths get 404. Uses long polling, not WebSockets. */
export async function preview(exchange: Exchange, deps: PreviewDeps): Promise<void> {
  const { path } = exchange;
  const query = new URLSearchParams(exchange.query);
  if (path.endsWith('/gtm/debug')) return debugPage(exchange, query, deps.config);
  if (path.endsWith('/gtm/exit_preview')) return exitPreview(exchange, query);
  if (path.endsWith('/gtm/get_memo')) return await getMemo(exchange, query, deps.memos);
  if (path.endsWith('/gtm/post_memo')) return await postMemo(exchange, query, deps);
  if (path.endsWith('/gtm/preview_status')) return previewStatus(exchange);
  if (path.includes('/gtm/debug/')) return await debugResource(exchange, deps);
  sendAnswer(exchange, 404, NOT_FOUND);
}

/**
 * The Tag Manager interface opens this page with `id`, `gtm_auth` and `gtm_preview`. The page sets the three debug
 * cookies for any draft of the server's own container: Google judges `gtm_auth` when the processing server fetches that
 * draft.
 */
function debugPage(exchange: Exchange, query: URLSearchParams, config: ContainerConfig): void {
  const opened = sessionOf(exchange, query);
  if (opened === null) {
    sendAnswer(exchange, 404, NOT_FOUND);
    return;
  }
  const isOwn = opened.id === config.id;
  sendAnswer(exchange, 200, {
    type: 'text/html',
    body: isOwn ? page('Tag Assistant', opened.session) : page('Preview failed to load'),
    headers: { 'cache-control': 'no-store', ...(isOwn ? { 'set-cookie': renewed(exchange, opened) } : {}) },
  });
}

/** The draft that a query names, with the session of the cookie or a new one; `null`: a parameter is missing. */
function sessionOf({ request }: Exchange, query: URLSearchParams) {
  const [id, auth, draft] = ['id', 'gtm_auth', 'gtm_preview'].map((name) => query.get(name) ?? '');
  if (!id || !auth || !draft) return null;
  return { id, auth, preview: draft, session: debugCookie(request, 'gtm_debug', id) ?? newSession() };
}

const renewed = ({ request }: Exchange, opened: NonNullable<ReturnType<typeof sessionOf>>) =>
  debugCookies(request, opened.id, opened);

function page(title: string, session = ''): string {
  const meta = session === '' ? '' : `<meta name="sgtm:debug-session" content="${escapeHtml(session)}">`;
  return `<!doctype html><html lang="en"><meta charset="utf-8">${meta}<title>${title}</title><h1>${title}</h1></html>\n`;
}

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** Removes the container's values from the three cookies. */
function exitPreview(exchange: Exchange, query: URLSearchParams): void {
  const id = query.get('id') ?? '';
  if (id === '') {
    sendAnswer(exchange, 404, NOT_FOUND);
    return;
  }
  const cookies = debugCookies(exchange.request, id, null);
  sendAnswer(exchange, 200, { type: JSON_TYPE, headers: { ...JSON_HEADERS, 'set-cookie': cookies } });
}

/** Needs the session of the `gtm_debug` cookie, and renews the cookies if the query names the draft completely. */
async function getMemo(exchange: Exchange, query: URLSearchParams, memos: Memos): Promise<void> {
  const id = query.get('id') ?? '';
  const session = id === '' ? undefined : debugCookie(exchange.request, 'gtm_debug', id);
  if (!session) return sendAnswer(exchange, 404, { type: JSON_TYPE, headers: JSON_HEADERS });
  const opened = sessionOf(exchange, query);
  if (opened !== null) exchange.response.setHeader('set-cookie', renewed(exchange, opened));
  const abandoned = new AbortController();
  exchange.response.once('close', () => abandoned.abort());
  const found = await memos.take(session, abandoned.signal);
  if (found === null) {
    exchange.response.writeHead(204).end();
    return;
  }
  sendAnswer(exchange, 200, {
    type: JSON_TYPE,
    body: JSON_PREFIX + JSON.stringify({ [id]: found }),
    headers: JSON_HEADERS,
  });
}

/** Takes `[{ "sessionId": "…", "memos": […] }]` from the processing server, which sends the auth as proof. */
async function postMemo(
  exchange: Exchange,
  query: URLSearchParams,
  { config, memos }: PreviewDeps,
): Promise<void> {
  const body = await readBody(exchange);
  if (body === null) return;
  if (query.get('auth_code') !== config.auth) return sendAnswer(exchange, 403, { body: 'Not authorized.' });
  const posts = parsePosts(body);
  if (posts === null) return sendAnswer(exchange, 400, { body: 'Incoming request memo was malformed.' });
  for (const { sessionId, memos: posted } of posts) memos.post(sessionId, posted);
  sendAnswer(exchange, 200);
}

interface Post {
  readonly sessionId: string;
  readonly memos: readonly unknown[];
}

function parsePosts(body: string): readonly Post[] | null {
  const isPost = (value: unknown): value is Post =>
    typeof value === 'object' &&
    value !== null &&
    'sessionId' in value &&
    typeof value.sessionId === 'string' &&
    value.sessionId !== '' &&
    'memos' in value &&
    Array.isArray(value.memos);
  try {
    const parsed: unknown = JSON.parse(body);
    return Array.isArray(parsed) && parsed.every(isPost) ? parsed : null;
  } catch {
    return null;
  }
}

/** The previews of this browser, for Tag Manager's user interface. */
function previewStatus(exchange: Exchange): void {
  sendAnswer(exchange, 200, {
    type: JSON_TYPE,
    body: JSON_PREFIX + JSON.stringify({ preview: previewsIn(exchange.request) }),
    headers: {
      ...JSON_HEADERS,
      'access-control-allow-origin': USER_INTERFACE,
      'access-control-allow-credentials': 'true',
    },
  });
}
