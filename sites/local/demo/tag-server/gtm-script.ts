interface GtmScript {
  readonly id: string;
  /** The data layer's name, from `l`. */
  readonly dataLayer: string;
  /** The environment whose draft is previewed, from `gtm_preview`; `null`: the published version. */
  readonly preview: string | null;
  /** The server that rendered the script. The page shows it, so a test can tell the servers apart. */
  readonly servedBy: string;
  /** Where the visitor is, as the server sees it: `US-CA` or `US`; `null`: unknown. */
  readonly place: string | null;
  /** The container's consent defaults. A page's own have the same form. */
  readonly consentDefaults?: readonly ConsentDefault[];
  /** Statements that run once, after the registration. `w` is the window. */
  readonly tags?: string;
}

/** A default of Consent Mode. `region` has the places that the default is for; without `region`, it is for all. */
export interface ConsentDefault {
  readonly region?: readonly string[];
  readonly [purpose: string]: 'granted' | 'denied' | readonly string[] | undefined;
}

/** The data layer's name must be an identifier, as in the real script; any other value is ignored. */
const IDENTIFIER = /^[A-Za-z_$][\w$]{0,63}$/;

/** The parts of a `gtm.js` request's query that change the script. */
export function readGtmQuery(query: URLSearchParams): Pick<GtmScript, 'id' | 'dataLayer' | 'preview'> {
  const named = query.get('l') ?? '';
  return {
    id: query.get('id') ?? '',
    dataLayer: IDENTIFIER.test(named) ? named : 'dataLayer',
    preview: query.get('gtm_preview'),
  };
}

/**
 * A container script with the effects that pages rely on: it registers itself as `google_tag_manager[id]`, with the consent
 * that the defaults for the visitor's place make (the most specific one wins), and pushes `gtm.dom` and `gtm.load` to the
 * data layer. Values are inserted as JSON literals only.
 */
export function renderGtmScript({
  id,
  dataLayer,
  preview,
  servedBy,
  place,
  consentDefaults = [],
  tags = '',
}: GtmScript): string {
  const literal = (value: unknown) => JSON.stringify(value).replaceAll('<', '\\u003c');
  const container = { dataLayer: { name: dataLayer }, preview, servedBy, place, consent: {} };
  return `// Tagyard demo container ${literal(id)}${preview === null ? '' : ' (preview)'}
(function (w, id, name, container, defaults) {
  var registry = (w.google_tag_manager = w.google_tag_manager || {});
  if (registry[id]) return;
  registry[id] = container;
  var layer = (w[name] = w[name] || []);
  var place = container.place || '';
  defaults = defaults.concat(layer.filter(function (entry) {
    return entry && entry[0] === 'consent' && entry[1] === 'default';
  }).map(function (entry) { return entry[2]; }));
  ['', place.split('-')[0], place].forEach(function (within, index) {
    if (index > 0 && !within) return;
    defaults.forEach(function (each) {
      if (within ? (each.region || []).indexOf(within) < 0 : each.region) return;
      Object.keys(each).forEach(function (purpose) {
        if (purpose !== 'region' && purpose !== 'wait_for_update') container.consent[purpose] = each[purpose];
      });
    });
  });
  layer.push({ event: 'gtm.dom', 'gtm.uniqueEventId': layer.length + 1 });
  function load() { layer.push({ event: 'gtm.load', 'gtm.uniqueEventId': layer.length + 1 }); }
  if (w.document.readyState === 'complete') load();
  else w.addEventListener('load', load);
  ${tags}
})(window, ${literal(id)}, ${literal(dataLayer)}, ${literal(container)}, ${literal(consentDefaults)});
`;
}
