/** The version in Google's addresses. The server container answers any version. */
const VERSION = '56k0';
/** How long a tag waits for the worker before it sends its hits itself. */
const TIMEOUT_MS = 3000;

/**
 * The text of the Google tag's function `viaWorker(w, base, direct)`. It returns a function that sends hits: through the
 * service worker of the server container at `base` (docs/facts.md, Service worker), or by `direct` if the worker doesn't
 * start. The worker's page is in a frame within an empty frame.
 */
export const VIA_WORKER = `function viaWorker(w, base, direct) {
  var outer = w.document.createElement('iframe');
  outer.style.display = 'none';
  w.document.documentElement.appendChild(outer);
  var inner = outer.contentDocument.createElement('iframe');
  var address = new URL(base + '/_/service_worker/${VERSION}/sw_iframe.html', w.location.href);
  address.searchParams.set('origin', w.location.origin);
  inner.src = address.href;
  outer.contentDocument.body.appendChild(inner);
  var waiting = [];
  function use(next) {
    send = next;
    waiting.splice(0).forEach(next);
  }
  var send = function (url) { waiting.push(url); };
  var timer = w.setTimeout(function () { use(direct); }, ${TIMEOUT_MS});
  w.addEventListener('message', function (event) {
    if (event.source !== inner.contentWindow || event.origin !== address.origin) return;
    w.clearTimeout(timer);
    if (event.data !== 'ready') use(direct);
    else use(function (url) { inner.contentWindow.postMessage(url, address.origin); });
  });
  return function (url) { send(url); };
}`;
