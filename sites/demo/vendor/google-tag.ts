import type { ConsentDefault } from '../tag-server/gtm-script.ts';

/** What a web container of the stand-in has. */
export interface WebContainer {
  /** Its Google tag, such as `G-ABC1234`; `null`: none. */
  readonly googleTag: string | null;
  /** Further destinations of the Google tag, such as `AW-1234567`. */
  readonly destinations: readonly string[];
  /** `server_container_url` of the Google tag; `null`: its hits go to Google Analytics. */
  readonly serverContainerUrl: string | null;
  /** Its consent defaults, some for some regions only. */
  readonly consentDefaults?: readonly ConsentDefault[];
}

export type ContainerOf = (id: string) => WebContainer | Promise<WebContainer>;

/** A Google tag and an Ads destination with the container's own letters and digits. */
export function defaultContainer(id: string): WebContainer {
  const own = id.replace(/^GTM-/, '');
  return { googleTag: `G-${own}`, destinations: [`AW-${own}`], serverContainerUrl: null };
}

interface Served {
  /** Under which the scripts' own vendor answers: absolute, or a path of the script's own host. */
  readonly base: string;
  readonly dataLayer: string;
}

/** The container's version, in every address that a script of Google requests. */
const VERSION = '45He4b1v9100000000za200';

const literal = (value: unknown) => JSON.stringify(value).replaceAll('<', '\\u003c');

/**
 * The part of `gtm.js` that loads the container's Google tag and its destinations (docs/facts.md, Web container script).
 * Each script is added with the page's nonce. The Google tag's settings are kept where `renderGoogleTag` reads them.
 */
export function renderTags(container: WebContainer, { base, dataLayer }: Served): string {
  const { googleTag, destinations, serverContainerUrl } = container;
  if (googleTag === null) return '';
  const address = (path: string, id: string) =>
    `${base}${path}?${new URLSearchParams({ id, l: dataLayer, cx: 'c', gtm: VERSION })}`;
  const urls = [
    address('/gtag/js', googleTag),
    ...destinations.map((destination) => address('/gtag/destination', destination)),
  ];
  const settings = serverContainerUrl === null ? {} : { server_container_url: serverContainerUrl };
  return `(w.google_tag_data = w.google_tag_data || {})[${literal(googleTag)}] = ${literal(settings)};
  var d = w.document;
  var own = (d.currentScript || {}).src || d.baseURI;
  var nonce = (d.querySelector('script[nonce]') || {}).nonce;
  ${literal(urls)}.forEach(function (url) {
    var script = d.createElement('script');
    script.async = true;
    script.src = new URL(url, own).href;
    if (nonce) script.nonce = nonce;
    d.head.appendChild(script);
  });`;
}

/**
 * `gtag/js`: the Google tag itself. It sends one hit for the page to its `server_container_url`, or the older
 * `transport_url`, of the page's `gtag('config', …)` or of the web container that loaded it; without either, to
 * Google Analytics. Without a configuration it sends none.
 */
export function renderGoogleTag(id: string, dataLayer: string, analyticsUrl: string): string {
  return `// Tagyard demo Google tag ${literal(id)}
(function (w, id, name, analytics) {
  var registry = (w.google_tag_manager = w.google_tag_manager || {});
  if (registry[id]) return;
  registry[id] = {};
  var settings = (w.google_tag_data || {})[id];
  (w[name] || []).forEach(function (entry) {
    if (entry && entry[0] === 'config' && entry[1] === id) settings = entry[2] || {};
  });
  if (!settings) return;
  var to = settings.server_container_url || settings.transport_url || analytics;
  var query = new URLSearchParams({ v: '2', tid: id, gtm: ${literal(VERSION)}, dl: w.location.href, en: 'page_view' });
  var own = (w.document.currentScript || {}).src || w.location.href;
  w.fetch(new URL(to.replace(/\\/$/, '') + '/g/collect?' + query, own).href, {
    method: 'POST', mode: 'no-cors', credentials: 'include', keepalive: true,
  }).catch(function () {});
})(window, ${literal(id)}, ${literal(dataLayer)}, ${literal(analyticsUrl)});
`;
}

/** `gtag/destination`: a further destination of a Google tag, which only registers itself. */
export function renderDestination(id: string): string {
  return `// Tagyard demo destination ${literal(id)}
(window.google_tag_manager = window.google_tag_manager || {})[${literal(id)}] = {};
`;
}
