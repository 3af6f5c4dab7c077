import type { ProfileRecord } from '../contract.ts';

/** A session ends after 30 minutes without a bootstrap. */
export const SESSION_IDLE_MS = 30 * 60_000;

const ID = /^[0-9a-f]{32}$/;

/** 128 random bits as 32 hex digits. */
export function randomId(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

/** The first well-formed id of the candidates. A malformed one counts as missing. */
export function wellFormedId(...candidates: readonly (string | undefined)[]): string | undefined {
  return candidates.find((candidate) => candidate !== undefined && ID.test(candidate));
}

interface Session {
  readonly id: string;
  readonly isNew: boolean;
}

/**
 * Continues the session that the page names, if the profile has stored that session and it is not idle; else starts a
 * new one.
 */
export function continueSession(
  named: string | undefined,
  known: ProfileRecord['session'],
  now: number,
): Session {
  const alive = known !== null && now - known.lastSeenAt <= SESSION_IDLE_MS;
  return alive && known.id === named ? { id: known.id, isNew: false } : { id: randomId(), isNew: true };
}
