import type { Site } from '../contract.ts';
import { isNamedBy } from '../paths.ts';

/** What the snippet of a shop's or CMS's own plugin states in the address of its script. */
export interface Snippet {
  /** The name of the page's data layer, which the snippet has started. */
  readonly layer: string;
  /** The query of the web tag's script: data layer, environment and preview. */
  readonly query: string;
}

const LAYER = /^[A-Za-z_$][\w$]{0,63}$/;
/** `/*` doesn't count as a proxy path here: it is only for paths that the edge doesn't answer itself. */
const isNarrow = (path: string) => path !== '/*';
const ENVIRONMENT = ['gtm_auth', 'gtm_preview', 'gtm_cookies_win', 'gtm_debug'];

/** The loader token of a site whose domains have prefixes. */
export const loaderOf = ({ domains }: Site): string | undefined =>
  domains.find(({ sameOrigin }) => sameOrigin?.loader !== undefined)?.sameOrigin?.loader;

/**
 * True if the path ends with `scriptPath` and the query names a web tag of the site: `?id=GTM-ABC1234` or
 * `?GTM-ABC1234`. If `scriptPath` is the whole path, the query may name none, because some plugins can omit the id.
 * False for paths that the site forwards to its tag server, which can be set up to serve a script of the same
 * name.
 */
export function isScriptAddress(
  { path, query }: { readonly path: string; readonly query: string },
  site: Site,
  scriptPath: string,
): boolean {
  if (!path.endsWith(`/${scriptPath}`) || loaderOf(site) === undefined) return false;
  if (isNamedBy(path, site.proxyPaths.filter(isNarrow))) return false;
  const id = new URLSearchParams(query).get('id') ?? /^\?(GTM-[A-Z0-9]+)(?:&|$)/.exec(query)?.[1];
  return id === undefined ? path === `/${scriptPath}` : site.domains.some(({ webTagId }) => webTagId === id);
}

/** `null`: the data layer's name is not valid. */
export function readSnippet({ searchParams }: URL): Snippet | null {
  const layer = searchParams.get('l') || 'dataLayer';
  if (!LAYER.test(layer)) return null;
  const query = new URLSearchParams(layer === 'dataLayer' ? {} : { l: layer });
  for (const name of ENVIRONMENT) {
    const value = searchParams.get(name);
    if (value !== null) query.set(name, value);
  }
  return { layer, query: query.size === 0 ? '' : `?${query}` };
}
