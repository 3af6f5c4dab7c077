import { type Exchange, sendAnswer } from './exchange.ts';
import { readGtmQuery, renderGtmScript } from './gtm-script.ts';
import { loadCrypto } from './node/modules.ts';

const SCRIPT = 'application/javascript; charset=utf-8';

/** The paths of a web container client. The stand-in renders the scripts; the real server fetches them from Google. */
const SCRIPT_PATHS: ReadonlySet<string> = new Set(['/gtm.js', '/gtag/js', '/gtag/destination', '/ns.html']);

/**
 * Below this path, the web container client serves every script. Tag Manager generates it; here it follows from the
 * container's id.
 */
export function tagServingPath(containerId: string): string {
  return `/t${loadCrypto().createHash('sha256').update(containerId).digest('hex').slice(0, 7)}`;
}

/** True if the web container client claims a GET of this path. */
export function isScriptPath(path: string, containerId: string): boolean {
  return SCRIPT_PATHS.has(path) || `${path}/`.startsWith(`${tagServingPath(containerId)}/`);
}

/**
 * The visitor's place as the variable Visitor Region reads it: from the headers of Google's load balancer, whose region
 * begins with the country.
 */
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

/**
 * Google's service worker (docs/facts.md, Service worker): a page without content that a tag loads in a frame, and the worker
 * that this page registers. The segment before the file's name is its version.
 */
const FILE = /^\/_\/service_worker\/[0-9a-z]{1,8}\/(sw_iframe\.html|sw\.js)$/;

export function isServiceWorkerPath(path: string): boolean {
  return FILE.test(path);
}

/**
 * Registers the worker and forwards to it what a page sends. Only the page of the origin in the query may send. The
 * tag's frame is in an empty frame of that page, so the page is the parent's parent.
 */
const FRAME = `<!doctype html><title>sw</title><script>
(function (origin, page) {
  function tell(text) { page.postMessage(text, origin); }
  if (!origin || !navigator.serviceWorker) return;
  navigator.serviceWorker.register('sw.js?origin=' + encodeURIComponent(origin)).then(function (registration) {
    var worker = registration.installing || registration.waiting || registration.active;
    function start() {
      if (worker.state !== 'activated') return;
      worker.removeEventListener('statechange', start);
      addEventListener('message', function (event) {
        if (event.source === page && event.origin === origin) worker.postMessage(event.data);
      });
      tell('ready');
    }
    worker.addEventListener('statechange', start);
    start();
  }).catch(function () { tell('failed'); });
})(new URLSearchParams(location.search).get('origin'), parent.parent);
</script>`;

/** The worker sends the hits that it gets, with the cookies of its own host. */
const WORKER = `addEventListener('install', function () { skipWaiting(); });
addEventListener('message', function (event) {
  event.waitUntil(fetch(event.data, { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(function () {}));
});
`;

export function serviceWorker(exchange: Exchange): void {
  const isPage = exchange.path.endsWith('.html');
  sendAnswer(exchange, 200, {
    type: isPage ? 'text/html; charset=utf-8' : SCRIPT,
    body: isPage ? FRAME : WORKER,
    headers: { 'cache-control': 'private, max-age=900' },
  });
}
