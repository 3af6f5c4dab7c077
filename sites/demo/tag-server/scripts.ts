import { createHash } from 'node:crypto';
import { type Exchange, sendAnswer } from './exchange.ts';
import { readGtmQuery, renderGtmScript } from './gtm-script.ts';

const SCRIPT = 'application/javascript; charset=utf-8';

/** The paths of a web container client. The stand-in renders the scripts; the real server fetches them from Google. */
const SCRIPT_PATHS: ReadonlySet<string> = new Set(['/gtm.js', '/gtag/js', '/gtag/destination', '/ns.html']);

/**
 * The client's own tag serving path, below which it serves every script. Tag Manager generates it; here it follows from the
 * container's id.
 */
export function tagServingPath(containerId: string): string {
  return `/t${createHash('sha256').update(containerId).digest('hex').slice(0, 7)}`;
}

/** True where the web container client claims a GET of this path. */
export function isScriptPath(path: string, containerId: string): boolean {
  return SCRIPT_PATHS.has(path) || `${path}/`.startsWith(`${tagServingPath(containerId)}/`);
}

/** As the variable Visitor Region reads it: the headers of Google's load balancer, whose region begins with the country. */
function visitorRegion({ request }: Exchange): string | null {
  const stated = (name: string) => String(request.headers[name] ?? '');
  const country = stated('x-gclb-country');
  const region = stated('x-gclb-region').slice(country.length);
  if (country === '') return null;
  return region === '' ? country : `${country}-${region}`;
}

export function script(exchange: Exchange): void {
  const query = new URLSearchParams(exchange.query);
  const gtm = readGtmQuery(query);
  const isDraft = query.has('gtm_auth') || query.has('gtm_preview');
  const headers = { 'cache-control': isDraft ? 'no-store' : 'private, max-age=900' };
  if (gtm.id === '') sendAnswer(exchange, 400);
  else if (exchange.path.endsWith('/ns.html')) {
    sendAnswer(exchange, 200, {
      type: 'text/html; charset=utf-8',
      body: '<!doctype html><title>ns</title>',
      headers,
    });
  } else {
    sendAnswer(exchange, 200, {
      type: SCRIPT,
      body: renderGtmScript({ ...gtm, servedBy: 'tag server', place: visitorRegion(exchange) }),
      headers,
    });
  }
}
