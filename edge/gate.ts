import type { Plugin } from '../plugins/contract.ts';
import type { EdgeConfigDocument } from '../plugins/document.ts';
import { reasonOf } from './base/json.ts';

/** A plugin that is enabled for a site, with its parsed settings. */
export interface Enabled {
  readonly plugin: Plugin;
  readonly settings: unknown;
}

interface Gated {
  /** The enabled plugins, in the order of the list. */
  readonly enabled: readonly Enabled[];
  /** Plugins that derive keys of profiles, enabled or not, with valid options. */
  readonly keepers: readonly Enabled[];
  /** Plugins with invalid options. Mandatory ones run on their defaults, optional ones are disabled. */
  readonly rejected: readonly { readonly plugin: string; readonly reason: string }[];
}

type Gate = Pick<EdgeConfigDocument, 'features' | 'modules'>;

/**
 * Where no EDGE_CONFIG document can be read in time, and the registry names no plugin that fails closed: mandatory plugins
 * on their defaults, optional ones disabled.
 */
export const OPEN_GATE: Gate = { features: {}, modules: {} };

const isAlwaysOn = (plugin: Plugin): boolean => plugin.kind === 'mandatory' && plugin.alwaysOn === true;

/** Decides which plugins run for a site, before any plugin code runs. */
export function gate(plugins: readonly Plugin[], { features, modules }: Gate): Gated {
  const enabled: Enabled[] = [];
  const keepers: Enabled[] = [];
  const rejected: { plugin: string; reason: string }[] = [];
  for (const plugin of plugins) {
    const options = modules[plugin.name] ?? {};
    const chosen = plugin.kind === 'mandatory' || features[plugin.flag] === true;
    const off = !chosen || (options.enabled === false && !isAlwaysOn(plugin));
    if (off && plugin.profileKey === undefined) continue;
    const parsed = plugin.config.safeParse(options);
    if (parsed.success && plugin.profileKey !== undefined) keepers.push({ plugin, settings: parsed.data });
    if (off) continue;
    if (parsed.success) {
      enabled.push({ plugin, settings: parsed.data });
    } else {
      rejected.push({ plugin: plugin.name, reason: reasonOf(parsed.error) });
      if (plugin.kind === 'mandatory') enabled.push({ plugin, settings: plugin.config.parse({}) });
    }
  }
  return { enabled, keepers, rejected };
}
