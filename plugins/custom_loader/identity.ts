import type { PluginContext } from '../contract.ts';
import type { NamedCookies } from '../profile.ts';
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

/** An identified visitor: its id, its session and what is kept of it. */
export interface IdentifiedVisitor {
  readonly id: string;
  readonly isNew: boolean;
  readonly session: Session;
  readonly profile: Profile;
}

/** What a request names. */
interface Named {
  /** A well-formed id. */
  readonly sentId: string | undefined;
  /** The session, by its token or its id. */
  readonly named: string | undefined;
  readonly cookies: NamedCookies;
}

/** Knows the visitor and the session again, or makes new ones. An identity that has ended is deleted and replaced. */
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

/** Deletes all that is kept of a visitor. */
export async function withdraw(context: PluginContext, id: string, cookies: NamedCookies): Promise<void> {
  const keys = [...(await context.profileKeys(cookies)), id];
  await Promise.all(keys.map((key) => context.profiles.delete(key)));
}
