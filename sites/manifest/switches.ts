import { ALWAYS_ON } from '../../plugins/document.ts';
import type { Manifest } from './schema.ts';

/**
 * Why `enabled: false` has no effect. Files that were written for earlier versions may contain it; the API refuses it.
 */
export const ALWAYS_ON_MESSAGE = 'has no effect: this plugin is always on. Remove the key.';

/** The paths of a manifest's `enabled: false` for plugins that are always on. */
export function ignoredSwitches(modules: Partial<Manifest['modules']>): [string, string, string][] {
  return ALWAYS_ON.flatMap((name): [string, string, string][] =>
    modules[name]?.enabled === false ? [['modules', name, 'enabled']] : [],
  );
}
