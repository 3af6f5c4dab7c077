import type { PluginContext } from '../contract.ts';
import type { NamedCookies, StoredCookie } from '../profile.ts';
import { newProfile, type Profile, readProfile } from './profile.ts';
import { continueSession, provenSession, type Session } from './session.ts';

const ID = /^[0-9a-f]{32}$/;

/** 128 random bits as 32 hex digits. */
export function randomId(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

/** The first well-formed id of the candidates. A malformed one counts as missing. */
export function wellFormedId(...candidates: readonly (string | undefined)[]): string | undefined {
  return candidates.find((candidate) => candidate !== undefined && ID.test(candidate));
}

/** An identified visitor: the id, the session, and what is kept of the visitor. */
export interface IdentifiedVisitor {
  readonly id: string;
  readonly isNew: boolean;
  readonly session: Session;
  readonly profile: Profile;
}

/** What a request says of the visitor. */
interface Named {
  /** A well-formed id. */
  readonly sentId: string | undefined;
  /** The session, by its token or its id. */
  readonly named: string | undefined;
  readonly cookies: NamedCookies;
}

/** Recognizes the visitor and the session, or makes new ones. An identity that has ended is deleted and replaced. */
export async function identify(
  context: PluginContext,
  { sentId, named, cookies }: Named,
): Promise<IdentifiedVisitor> {
  const id = sentId ?? randomId();
  const isKnown = sentId !== undefined;
  const proven = isKnown ? await provenSession(context, { profile: id, text: named }) : null;
  const profile = await readProfile(context, { id, isKnown, cookies, proven });
  if (profile.endsAt > context.now()) {
    const session = await continueSession(context, id, { proven, known: profile.session });
    return { id, isNew: !isKnown, session, profile };
  }
  await context.profiles.delete(profile.key);
  const next = randomId();
  const session = await continueSession(context, next, { proven: null, known: null });
  return { id: next, isNew: true, session, profile: newProfile(context, next) };
}

/** Deletes all that is kept of a visitor, found by the id or by a derived key, and returns the deleted cookies. */
export async function withdraw(
  { profiles, profileKeys }: PluginContext,
  id: string | undefined,
  cookies: NamedCookies,
): Promise<StoredCookie[]> {
  const keys = [...(await profileKeys(cookies)), ...(id === undefined ? [] : [id])];
  const kept = await Promise.all(
    keys.map(async (key) => {
      const record = await profiles.read(key);
      // The record of a shared key stays, so that the key stays refused; it has no cookies.
      if (record?.isShared) return [];
      await profiles.delete(key);
      return record?.cookies ?? [];
    }),
  );
  return kept.flat();
}
