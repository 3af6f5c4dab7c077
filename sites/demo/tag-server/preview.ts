import { type Exchange, readBody, sendAnswer } from './exchange.ts';
import type { Memos } from './memos.ts';
import type { ContainerConfig } from './settings.ts';

interface PreviewDeps {
  readonly config: ContainerConfig;
  readonly memos: Memos;
}

/** Serves the preview role's paths, matched by suffix; other paths get 404. Uses long polling, not WebSockets. */
export async function preview(exchange: Exchange, { config, memos }: PreviewDeps): Promise<void> {
  const { path, method } = exchange;
  const query = new URLSearchParams(exchange.query);
  if (path.endsWith('/gtm/debug') && method === 'GET') return debugPage(exchange, query, config);
  if (path.endsWith('/gtm/get_memo') && method === 'GET') return await getMemo(exchange, memos);
  if (path.endsWith('/gtm/preview_status') && method === 'GET') {
    return sendAnswer(exchange, 200, {
      type: 'application/json',
      body: JSON.stringify({ active: memos.active() }),
    });
  }
  if (path.endsWith('/gtm/post_memo') && method === 'POST') {
    const message = await readBody(exchange);
    if (message === null) return;
    if (query.get('auth_code') !== config.auth) return sendAnswer(exchange, 403, { body: 'Forbidden' });
    memos.post(message);
    return sendAnswer(exchange, 200, { body: 'ok' });
  }
  sendAnswer(exchange, 404, { body: 'Not Found' });
}

async function getMemo(exchange: Exchange, memos: Memos): Promise<void> {
  const abandoned = new AbortController();
  exchange.response.once('close', () => abandoned.abort());
  const messages = await memos.take(abandoned.signal);
  if (messages !== null) {
    return sendAnswer(exchange, 200, { type: 'application/json', body: JSON.stringify(messages) });
  }
  exchange.response.writeHead(204).end();
}

/** The Tag Manager interface opens this page with `id`, `gtm_auth` and `gtm_preview`. It sets the three debug cookies. */
function debugPage(exchange: Exchange, query: URLSearchParams, config: ContainerConfig): void {
  const [id, auth, draft] = [query.get('id'), query.get('gtm_auth'), query.get('gtm_preview')];
  const isKnown = id === config.id && auth === config.auth && draft === `env-${config.env}`;
  const cookie = (name: string, value: string) =>
    `${name}=${id}=${value}; Max-Age=300; Path=/; HttpOnly; SameSite=None; Secure`;
  const cookies = isKnown
    ? [cookie('gtm_auth', auth), cookie('gtm_debug', 'x'), cookie('gtm_preview', draft)]
    : [];
  sendAnswer(exchange, 200, {
    type: 'text/html; charset=utf-8',
    body: page(isKnown ? 'Tag Assistant' : 'Preview failed to load'),
    headers: { 'cache-control': 'no-store', ...(isKnown ? { 'set-cookie': cookies } : {}) },
  });
}

function page(title: string): string {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title><h1>${title}</h1></html>\n`;
}
