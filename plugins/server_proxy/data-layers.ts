import type { PluginContext } from '../contract.ts';
import { DATA_LAYER_NAMES, NAME_REMEMBERED_MS } from './limits.ts';

/** The name of the page's data layer, by the parameter `l`. It must be an identifier, as in every snippet of the vendor. */
const DATA_LAYER = /^[A-Za-z_$][\w$]{0,63}$/;
const DEFAULT_NAME = 'dataLayer';

/** When each name of a site was last admitted, by site. */
const admitted = new Map<string, Map<string, number>>();

/** The name for the vendor; `null` for its default. Throws `malformed_request`. */
export function readDataLayer(context: PluginContext, query: URLSearchParams): string | null {
  const name = query.get('l') || DEFAULT_NAME;
  if (!DATA_LAYER.test(name)) throw context.problem('malformed_request', 'l must be an identifier');
  return name === DEFAULT_NAME ? null : name;
}

/** Throws `malformed_request` if `name` is new and the site already has as many names as the limit allows. */
export function admitDataLayer({ now, problem, site, variables }: PluginContext, name: string | null): void {
  if (name === null) return;
  const names = admitted.get(site.siteId) ?? new Map<string, number>();
  admitted.set(site.siteId, names);
  for (const [known, at] of names) if (now() - at >= NAME_REMEMBERED_MS || now() < at) names.delete(known);
  const limit = Number(variables.DATA_LAYER_NAMES || DATA_LAYER_NAMES);
  if (!names.has(name) && names.size >= limit) {
    throw problem('malformed_request', 'l names one data layer too many for this site');
  }
  names.set(name, now());
}
