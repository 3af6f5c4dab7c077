interface GtmScript {
  readonly id: string;
  /** The data layer's name, from `l`. */
  readonly dataLayer: string;
  /** The environment whose draft is previewed, from `gtm_preview`; `null`: the published version. */
  readonly preview: string | null;
  /** The server that rendered the script. The page shows it, so a test can tell the servers apart. */
  readonly servedBy: string;
  /** Statements that run once, after the registration. `w` is the window. */
  readonly tags?: string;
}

/** The data layer's name must be an identifier, as in the real script; any other value is ignored. */
const IDENTIFIER = /^[A-Za-z_$][\w$]{0,63}$/;

/** The parts of a `gtm.js` request that change its body. */
export function readGtmQuery(query: URLSearchParams): Pick<GtmScript, 'id' | 'dataLayer' | 'preview'> {
  const named = query.get('l') ?? '';
  return {
    id: query.get('id') ?? '',
    dataLayer: IDENTIFIER.test(named) ? named : 'dataLayer',
    preview: query.get('gtm_preview'),
  };
}

/**
 * A container script with the effects that pages rely on: it registers itself as `google_tag_manager[id]` and pushes
 * `gtm.dom` and `gtm.load` to the data layer. Values are inserted as JSON literals only.
 */
export function renderGtmScript({ id, dataLayer, preview, servedBy, tags = '' }: GtmScript): string {
  const literal = (value: unknown) => JSON.stringify(value).replaceAll('<', '\\u003c');
  const container = { dataLayer: { name: dataLayer }, preview, servedBy };
  return `// Tagyard demo container ${literal(id)}${preview === null ? '' : ' (preview)'}
(function (w, id, name, container) {
  var registry = (w.google_tag_manager = w.google_tag_manager || {});
  if (registry[id]) return;
  registry[id] = container;
  var layer = (w[name] = w[name] || []);
  layer.push({ event: 'gtm.dom', 'gtm.uniqueEventId': layer.length + 1 });
  function load() { layer.push({ event: 'gtm.load', 'gtm.uniqueEventId': layer.length + 1 }); }
  if (w.document.readyState === 'complete') load();
  else w.addEventListener('load', load);
  ${tags}
})(window, ${literal(id)}, ${literal(dataLayer)}, ${literal(container)});
`;
}
