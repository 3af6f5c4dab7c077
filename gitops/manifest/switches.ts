import { ALWAYS_ON } from '../../plugins/document.ts';
import type { Manifest } from './schema.ts';

/** Why `enabled: false` has no effect. Files may have it from earlier versions; the API refuses it. */
export const ALWAYS_ON_MESSAGE = 'has no effect: this plugin is always on. Remove the key.';

/** The paths in a manifest of `enabled: false` for plugins that are always on. */
export function ignoredSwitches(modules: Partial<Manifest['modules']>): [string, string, string][] {
  return ALWAYS_ON.flatMap((name): [string, string, string][] =>
    modules[name]?.enabled === false ? [['modules', name, 'enabled']] : [],
  );
}
