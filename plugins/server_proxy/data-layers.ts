import type { PluginContext } from '../contract.ts';
import { DATA_LAYER } from './config.ts';
import { DATA_LAYER_NAMES, NAME_REMEMBERED_MS } from './limits.ts';

const DEFAULT_NAME = 'dataLayer';

/** By site: the names that it doesn't state, with the time at which each was last admitted. */
const admitted = new Map<string, Map<string, number>>();

/**
 * The name of the data layer that the vendor's script is for, from the parameter `l`; `null`: the default. Throws
 * `malformed_request`.
 */
export function readDataLayer(context: PluginContext, query: URLSearchParams): string | null {
  const name = query.get('l') || DEFAULT_NAME;
  if (!DATA_LAYER.test(name))
    throw context.problem('malformed_request', 'the parameter l must be an identifier');
  return name === DEFAULT_NAME ? null : name;
}

/**
 * Throws `malformed_request` if `name` is new and the site already has as many names as the limit allows. The names that
 * the site itself states are always admitted and never counted: no stranger can take their place.
 */
export function admitDataLayer({ now, problem, site, variables }: PluginContext, name: string | null): void {
  if (name === null || site.dataLayers.includes(name)) return;
  const names = admitted.get(site.siteId) ?? new Map<string, number>();
  admitted.set(site.siteId, names);
  for (const [known, at] of names) if (now() - at >= NAME_REMEMBERED_MS || now() < at) names.delete(known);
  const limit = Number(variables.DATA_LAYER_NAMES || DATA_LAYER_NAMES);
  if (!names.has(name) && names.size >= limit) {
    throw problem(
      'malformed_request',
      'the parameter l names one data layer too many for this site; state the name in the manifest',
    );
  }
  names.set(name, now());
}
