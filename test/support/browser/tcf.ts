/** A TCF string whose `LastUpdated` is `time` (milliseconds), written in tenths of a second as base64url. */
export function tcString(time: number): string {
  const digits = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  let tenths = Math.floor(time / 100);
  let text = '';
  for (let place = 0; place < 6; place++) {
    text = digits[tenths % 64] + text;
    tenths = Math.floor(tenths / 64);
  }
  return `C${text}${text}AAA`;
}

/** What every TCF platform's snippet defines before its own script arrives (IAB Tech Lab, CMP API v2: the stub). */
export const TCF_STUB = `<script>(() => {
  const queue = [];
  window.__tcfapi = (...call) => {
    const [command, , callback] = call;
    if (call.length === 0) return queue;
    if (command === 'ping') callback({ cmpLoaded: false, cmpStatus: 'stub', apiVersion: '2.2' }, true);
    else queue.push(call);
  };
  const locator = document.createElement('iframe');
  locator.name = '__tcfapiLocator';
  locator.style.display = 'none';
  document.head.appendChild(locator);
})()</script>`;

/**
 * The platform's own script: it replaces the stub, handles the calls that the stub has queued, and calls every listener
 * with the state when it is added, and with each later one. `tcf.state(…)` sets a new state.
 */
export const tcfPlatform = (first: string) => `(() => {
  const queued = __tcfapi();
  let data = ${first};
  const listeners = new Map();
  const tell = (listenerId, callback) =>
    callback(Object.assign({ listenerId, gdprApplies: true, cmpStatus: 'loaded' }, data), true);
  window.__tcfapi = (command, version, callback, listenerId) => {
    if (command === 'addEventListener') {
      const own = listeners.size + 1;
      listeners.set(own, callback);
      tell(own, callback);
    }
    if (command === 'removeEventListener') callback(listeners.delete(listenerId));
  };
  queued.forEach((call) => __tcfapi(...call));
  window.tcf = {
    listeners: () => listeners.size,
    state(next) { data = next; listeners.forEach((callback, id) => tell(id, callback)); },
  };
})()`;

/** What a platform states: an event of the API, the purposes that are granted, and a TCF string of today. */
export const tcData = (eventStatus: string, ...granted: readonly number[]) =>
  JSON.stringify({
    eventStatus,
    tcString: tcString(Date.now()),
    purpose: { consents: Object.fromEntries(granted.map((id) => [id, true])) },
  });
