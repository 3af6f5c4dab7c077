import { type Exchange, sendAnswer } from './exchange.ts';
import { readGtmQuery, renderGtmScript } from './gtm-script.ts';

const SCRIPT = 'application/javascript; charset=utf-8';

/** The paths of a web container client. The stand-in renders the scripts; the real server fetches them from Google. */
export const SCRIPT_PATHS: ReadonlySet<string> = new Set(['/gtm.js', '/gtag/js', '/ns.html']);

export function script(exchange: Exchange): void {
  const query = new URLSearchParams(exchange.query);
  const gtm = readGtmQuery(query);
  const isDraft = query.has('gtm_auth') || query.has('gtm_preview');
  const headers = { 'cache-control': isDraft ? 'no-store' : 'private, max-age=900' };
  if (gtm.id === '') sendAnswer(exchange, 400);
  else if (exchange.path === '/ns.html') {
    sendAnswer(exchange, 200, {
      type: 'text/html; charset=utf-8',
      body: '<!doctype html><title>ns</title>',
      headers,
    });
  } else {
    sendAnswer(exchange, 200, {
      type: SCRIPT,
      body: renderGtmScript({ ...gtm, servedBy: 'tag server' }),
      headers,
    });
  }
}
