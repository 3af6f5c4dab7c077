import type { ConsentDefault } from '../tag-server/gtm-script.ts';
import { VIA_WORKER } from './service-worker.ts';

/** What a web container of the stand-in has. */
export interface WebContainer {
  /** Its Google tag, such as `G-ABC1234`; `null`: none. */
  readonly googleTag: string | null;
  /** Further destinations of the Google tag, such as `AW-1234567`. */
  readonly destinations: readonly string[];
  /** `server_container_url` of the Google tag; `null`: its hits are sent to Google Analytics. */
  readonly serverContainerUrl: string | null;
  /** True if its hits are sent to the server container through that server's service worker. */
  readonly serviceWorker?: boolean;
  /** Its consent defaults. A default with regions applies only there. */
  readonly consentDefaults?: readonly ConsentDefault[];
}

export type ContainerOf = (id: string) => WebContainer | Promise<WebContainer>;

/** A Google tag and an Ads destination with the container's own letters and digits. */
export function defaultContainer(id: string): WebContainer {
  const own = id.replace(/^GTM-/, '');
  return { googleTag: `G-${own}`, destinations: [`AW-${own}`], serverContainerUrl: null };
}

interface Served {
  /** The base URL of the scripts' vendor: absolute, or a path of the script's own host. */
  readonly base: string;
  readonly dataLayer: string;
}

/** The container's version, which is in every address that Google's scripts request. */
const VERSION = '45He4b1v9100000000za200';

/** The name of the stand-in's Trusted Types policy; a page that allows only named ones must allow it. */
const TRUSTED_TYPES = 'tagyard-demo-vendor';

const literal = (value: unknown) => JSON.stringify(value).replaceAll('<', '\\u003c');

/**
 * The part of `gtm.js` that loads the container's Google tag and its destinations (docs/facts.md, Web container script).
 * Each script element gets the page's nonce, if the page has one, and its address by a Trusted Types policy, if the
 * browser has Trusted Types. The Google tag's settings are kept where `renderGoogleTag` reads them.
 */
export function renderTags(container: WebContainer, { base, dataLayer }: Served): string {
  const { googleTag, destinations, serverContainerUrl, serviceWorker = false } = container;
  if (googleTag === null) return '';
  const address = (path: string, id: string) =>
    `${base}${path}?${new URLSearchParams({ id, l: dataLayer, cx: 'c', gtm: VERSION })}`;
  const urls = [
    address('/gtag/js', googleTag),
    ...destinations.map((destination) => address('/gtag/destination', destination)),
  ];
  const settings =
    serverContainerUrl === null
      ? {}
      : { server_container_url: serverContainerUrl, ...(serviceWorker ? { service_worker: true } : {}) };
  return `(w.google_tag_data = w.google_tag_data || {})[${literal(googleTag)}] = ${literal(settings)};
  var d = w.document;
  var own = (d.currentScript || {}).src || d.baseURI;
  var nonce = (d.querySelector('script[nonce]') || {}).nonce;
  var types = w.trustedTypes && w.trustedTypes.createPolicy(${literal(TRUSTED_TYPES)}, {
    createScriptURL: function (url) { return url; },
  });
  ${literal(urls)}.forEach(function (url) {
    var script = d.createElement('script');
    script.async = true;
    var address = new URL(url, own).href;
    script.src = types ? types.createScriptURL(address) : address;
    if (nonce) script.nonce = nonce;
    d.head.appendChild(script);
  });`;
}

/**
 * `gtag/js`: the Google tag itself. It sends a hit for the page, and one for each `gtag('event', …)` that follows. Its
 * configuration is that of the page's `gtag('config', …)`, or of the web container that loaded it; without one, it
 * sends no hit. Hits go to `server_container_url`, or the older `transport_url`, of that configuration; without either,
 * to Google Analytics. If the page or the container uses Consent Mode, a hit states the choice of that moment in `gcs`
 * (docs/facts.md, Consent).
 */
export function renderGoogleTag(id: string, dataLayer: string, analyticsUrl: string): string {
  return `// Tagyard demo Google tag ${literal(id)}
(function (w, id, name, analytics) {
  var registry = (w.google_tag_manager = w.google_tag_manager || {});
  if (registry[id]) return;
  registry[id] = {};
  var layer = w[name] || [];
  var settings = (w.google_tag_data || {})[id];
  layer.forEach(function (entry) {
    if (entry && entry[0] === 'config' && entry[1] === id) settings = entry[2] || {};
  });
  if (!settings) return;
  var to = (settings.server_container_url || settings.transport_url || analytics).replace(/\\/$/, '');
  var own = (w.document.currentScript || {}).src || w.location.href;
  function direct(url) {
    w.fetch(url, { method: 'POST', mode: 'no-cors', credentials: 'include', keepalive: true }).catch(function () {});
  }
  ${VIA_WORKER}
  var send = settings.service_worker ? viaWorker(w, new URL(to, own).href.replace(/\\/$/, ''), direct) : direct;
  function choice(purpose) {
    var state;
    Object.keys(registry).forEach(function (each) { state = (registry[each].consent || {})[purpose] || state; });
    layer.forEach(function (entry) {
      if (entry && entry[0] === 'consent' && entry[1] === 'update') state = (entry[2] || {})[purpose] || state;
    });
    return state ? Number(state === 'granted') : '-';
  }
  function hit(event) {
    var query = new URLSearchParams({ v: '2', tid: id, gtm: ${literal(VERSION)}, dl: w.location.href, en: event });
    var gcs = 'G1' + choice('ad_storage') + choice('analytics_storage');
    if (gcs !== 'G1--') query.set('gcs', gcs);
    send(new URL(to + '/g/collect?' + query, own).href);
  }
  hit('page_view');
  var push = layer.push;
  layer.push = function (entry) {
    var length = push.apply(layer, arguments);
    if (entry && entry[0] === 'event') hit(entry[1]);
    return length;
  };
})(window, ${literal(id)}, ${literal(dataLayer)}, ${literal(analyticsUrl)});
`;
}

/** `gtag/destination`: a further destination of a Google tag, which only registers itself. */
export function renderDestination(id: string): string {
  return `// Tagyard demo destination ${literal(id)}
(window.google_tag_manager = window.google_tag_manager || {})[${literal(id)}] = {};
`;
}
