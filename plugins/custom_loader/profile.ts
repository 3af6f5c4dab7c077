import type { PluginContext } from '../contract.ts';
import { type NamedCookies, type ProfileRecord, startOf } from '../profile.ts';
import type { Proven } from './session.ts';

/** What the store has of a visitor. */
export interface Profile {
  /** The key under which the visitor's record is stored, or will be. */
  readonly key: string;
  /** Null: the store has no record. Undefined: nothing is kept, or what is kept is unknown. */
  readonly record: ProfileRecord | null | undefined;
  /** The session of the record, even if the record has just been deleted. */
  readonly session: ProfileRecord['session'];
  /** When the identity ends, in milliseconds since the epoch. */
  readonly endsAt: number;
  /** False: the store certainly has nothing of this visitor, and nothing will be kept. */
  readonly isKept: boolean;
}

interface Named {
  readonly id: string;
  /**
   * False for an id that the edge has just made. It is not read from the store, because KV would cache that its key is
   * missing.
   */
  readonly isKnown: boolean;
  readonly cookies: NamedCookies;
  readonly proven: Proven | null;
}

type Stores = Pick<PluginContext, 'profiles' | 'profileKeys' | 'keepsProfiles' | 'identityMs' | 'now'>;

/** A visitor of whom nothing is known. */
export function newProfile({ now, identityMs }: Pick<Stores, 'now' | 'identityMs'>, key: string): Profile {
  return { key, record: null, session: null, endsAt: now() + identityMs, isKept: true };
}

/** Reads the visitor's record. The store isn't read if it can't have one, or while EDGE_CONFIG can't be read. */
export async function readProfile(
  context: Stores,
  { id, isKnown, cookies, proven }: Named,
): Promise<Profile> {
  const { keepsProfiles, profiles } = context;
  const fresh = newProfile(context, id);
  if (keepsProfiles === undefined) return { ...fresh, record: undefined, isKept: proven?.isKept ?? true };
  if (!keepsProfiles && proven?.isKept === false) return { ...fresh, record: undefined, isKept: false };
  const derived = await context.profileKeys(cookies);
  const keys = isKnown ? [...derived, id] : derived;
  if (!keepsProfiles) return { ...fresh, ...(await forget(profiles, keys)), record: undefined };
  for (const key of keys) {
    const record = await profiles.read(key);
    if (record?.isShared && key !== id) continue;
    const start = record ? startOf(record, context.now()) : context.now();
    return {
      key,
      record,
      session: record?.session ?? null,
      endsAt: start + context.identityMs,
      isKept: true,
    };
  }
  return fresh;
}

/** Deletes what was kept while a plugin that keeps something was on. */
async function forget(
  profiles: Stores['profiles'],
  keys: readonly string[],
): Promise<Pick<Profile, 'session' | 'isKept'>> {
  const records = await Promise.all(
    keys.map(async (key) => {
      const record = await profiles.read(key);
      if (record) await profiles.delete(key);
      return record;
    }),
  );
  const session = records.find((record) => record)?.session ?? null;
  return { session, isKept: records.includes(undefined) };
}

/** Stores the record if the hooks have changed it, and deletes it if it holds nothing any more. */
export async function keepProfile(
  { profiles }: Pick<Stores, 'profiles'>,
  { key, record: before, endsAt }: Profile,
  record: ProfileRecord,
): Promise<void> {
  const isEmpty = record.cookies.length === 0 && record.isShared !== true;
  if (isEmpty) return before ? profiles.delete(key) : undefined;
  if (before && keepsTheSame(before, record)) return;
  await profiles.write(key, record, endsAt);
}

/** Whether only the session has changed, which alone is no reason for a write. */
function keepsTheSame(before: ProfileRecord, after: ProfileRecord): boolean {
  const { isShared = false, browsers = [] } = before;
  return (
    (after.isShared ?? false) === isShared &&
    isSameList(after.cookies, before.cookies) &&
    isSameList(after.browsers ?? [], browsers)
  );
}

/** Hooks keep the entries that they don't change, so that most lists are the same without comparing them as JSON. */
const isSameList = (a: readonly unknown[], b: readonly unknown[]) =>
  a === b ||
  (a.length === b.length && a.every((entry, index) => entry === b[index])) ||
  JSON.stringify(a) === JSON.stringify(b);
