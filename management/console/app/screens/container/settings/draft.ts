import type { paths } from '../../../../../../base/client/index.ts';
import type { Container } from '../../../data/containers.ts';

type ContainerPatch = paths['/server-containers/{id}']['patch']['requestBody']['content']['application/json'];

/** What the settings form edits. */
const KEYS = [
  'name',
  'features',
  'modules',
  'consent',
  'consentMode',
  'fallback',
  'regions',
  'consentMaxDays',
  'tls',
  'resources',
] as const satisfies readonly (keyof Container & keyof ContainerPatch)[];

export type SettingsDraft = Pick<Container, (typeof KEYS)[number]>;

/** A value that differs between two states of the settings. */
export interface Difference {
  readonly path: string;
  readonly from: unknown;
  readonly to: unknown;
}

export function settingsOf(container: Container): SettingsDraft {
  return Object.fromEntries(KEYS.map((key) => [key, container[key]])) as unknown as SettingsDraft; // all of its keys
}

export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** The values that differ, one entry for each flag and each plugin. */
export function differences(before: SettingsDraft, after: SettingsDraft): Difference[] {
  return KEYS.flatMap((key) => {
    if (key !== 'features' && key !== 'modules') {
      return isSame(before[key], after[key]) ? [] : [{ path: key, from: before[key], to: after[key] }];
    }
    const names = new Set([...Object.keys(before[key]), ...Object.keys(after[key])]);
    return [...names]
      .filter((name) => !isSame(before[key][name], after[key][name]))
      .map((name) => ({
        path: `${key}.${name}`,
        from: before[key][name] ?? null,
        to: after[key][name] ?? null,
      }));
  });
}

/** A change request with only what the person changed, so that all else stays as another person left it. */
export function patchOf(before: SettingsDraft, after: SettingsDraft): ContainerPatch {
  const patch: Record<string, unknown> = {};
  for (const { path, to } of differences(before, after)) {
    const [key = '', name] = path.split('.');
    if (name === undefined) patch[key] = to;
    else patch[key] = { ...((patch[key] as object | undefined) ?? {}), [name]: to ?? {} };
  }
  return patch as ContainerPatch; // the keys and values of a draft
}
