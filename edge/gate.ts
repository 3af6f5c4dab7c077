import type { Plugin } from '../plugins/contract.ts';
import type { EdgeConfigDocument } from '../plugins/document.ts';
import { reasonOf } from './base/json.ts';

/** A plugin that is on for a site, with its settings parsed. */
export interface Enabled {
  readonly plugin: Plugin;
  readonly settings: unknown;
}

export interface Gated {
  /** In list order. */
  readonly enabled: readonly Enabled[];
  /** Plugins whose options were refused, with the reason; they run on defaults, or not at all where they are optional. */
  readonly rejected: readonly { readonly plugin: string; readonly reason: string }[];
}

type Gate = Pick<EdgeConfigDocument, 'features' | 'modules'>;

/** What holds without a document: mandatory plugins on their defaults, optional ones off. */
export const OPEN_GATE: Gate = { features: {}, modules: {} };

/** Which plugins run for a site, decided before any plugin code does. */
export function gate(plugins: readonly Plugin[], { features, modules }: Gate): Gated {
  const enabled: Enabled[] = [];
  const rejected: { plugin: string; reason: string }[] = [];
  for (const plugin of plugins) {
    const options = Object.hasOwn(modules, plugin.name) ? (modules[plugin.name] ?? {}) : {};
    const wanted =
      plugin.kind === 'mandatory' || (Object.hasOwn(features, plugin.flag) && features[plugin.flag] === true);
    if (!wanted || options.enabled === false) continue;
    const parsed = plugin.config.safeParse(options);
    if (parsed.success) {
      enabled.push({ plugin, settings: parsed.data });
      continue;
    }
    rejected.push({ plugin: plugin.name, reason: reasonOf(parsed.error) });
    if (plugin.kind === 'mandatory') enabled.push({ plugin, settings: plugin.config.parse({}) });
  }
  return { enabled, rejected };
}
