import type { PluginContext } from '../contract.ts';
import type { ProfileRecord } from '../profile.ts';

/** A session ends after 30 minutes without a bootstrap. */
export const SESSION_IDLE_MS = 30 * 60_000;

/** How far the clocks of two data centres may differ. */
const CLOCK_SKEW_MS = 60_000;

/** The id, the time of the last bootstrap in seconds (hex), whether a record is kept, and a signature of these. */
const TOKEN = /^([0-9a-f]{32})\.([0-9a-f]{8})\.([01])\.([0-9a-f]{32})$/;

export interface Session {
  readonly id: string;
  readonly isNew: boolean;
}

/**
 * What the page sends of its session (`text`): the signed token, or only the id if the loader is of an earlier version.
 */
interface Named {
  readonly profile: string;
  readonly text: string | undefined;
}

/** What a token proves. */
export interface Proven {
  readonly id: string;
  /** False: at the last bootstrap, the store had nothing of the profile. */
  readonly isKept: boolean;
}

type Signing = Pick<PluginContext, 'sign' | 'now' | 'site'>;

/**
 * Profiles and their tokens that the isolate has made or found genuine, so that the next page of a visit costs one
 * signature instead of two. Dropped with the site's documents.
 */
const genuine = new WeakMap<PluginContext['site'], Set<string>>();
const MAX_GENUINE = 1000;

function keepGenuine({ site }: Signing, named: string): void {
  const known = genuine.get(site);
  genuine.set(site, known && known.size < MAX_GENUINE ? known.add(named) : new Set([named]));
}

/**
 * 32 hex digits: the second at which the session began, and a signature of it for this site and profile. With it, any
 * data centre recognizes the id without a store.
 */
async function idOf(context: Signing, profile: string, start: string): Promise<string> {
  return start + (await context.sign(`session ${profile} ${start}`)).slice(0, 24);
}

const seconds = (ms: number) =>
  Math.floor(ms / 1000)
    .toString(16)
    .padStart(8, '0');
const milliseconds = (hex: string) => Number.parseInt(hex, 16) * 1000;

/** The token for the session's next bootstrap: the id, the time of this bootstrap and `isKept`, signed. */
export async function sessionToken(
  context: Signing,
  profile: string,
  { id, isKept }: Proven,
): Promise<string> {
  const text = `${id}.${seconds(context.now())}.${isKept ? 1 : 0}`;
  const token = `${text}.${(await context.sign(`token ${profile} ${text}`)).slice(0, 32)}`;
  keepGenuine(context, profile + token);
  return token;
}

/** The session that the page names, if the edge has signed it for this profile and it is not idle. */
export async function provenSession(context: Signing, { profile, text = '' }: Named): Promise<Proven | null> {
  const isAlive = (hex: string) => {
    const idle = context.now() - milliseconds(hex);
    return idle <= SESSION_IDLE_MS && idle > -CLOCK_SKEW_MS;
  };
  const [, id = text, last, kept, signature] = TOKEN.exec(text) ?? [];
  if (last !== undefined) {
    if (!isAlive(last)) return null;
    if (!genuine.get(context.site)?.has(profile + text)) {
      const signed = text.slice(0, text.lastIndexOf('.'));
      if ((await context.sign(`token ${profile} ${signed}`)).slice(0, 32) !== signature) return null;
      keepGenuine(context, profile + text);
    }
    return { id, isKept: kept === '1' };
  }
  const start = id.slice(0, 8);
  return isAlive(start) && (await idOf(context, profile, start)) === id ? { id, isKept: true } : null;
}

/** Continues the proven session, else the one that the profile's record has, if it is not idle; else starts a new one. */
export async function continueSession(
  context: Signing,
  profile: string,
  { proven, known }: { readonly proven: Proven | null; readonly known: ProfileRecord['session'] },
): Promise<Session> {
  if (proven !== null) return { id: proven.id, isNew: false };
  if (known !== null && context.now() - known.lastSeenAt <= SESSION_IDLE_MS)
    return { id: known.id, isNew: false };
  return { id: await idOf(context, profile, seconds(context.now())), isNew: true };
}
