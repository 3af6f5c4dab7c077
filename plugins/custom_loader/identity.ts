import type { ProfileRecord } from '../contract.ts';

/** A session is over after 30 minutes without a bootstrap, in milliseconds. */
export const SESSION_IDLE = 30 * 60_000;

const ID = /^[0-9a-f]{32}$/;

/** 128 random bits as 32 hex digits. */
export function randomId(): string {
  return crypto.getRandomValues(new Uint8Array(16)).toHex();
}

/** The first well-formed id of the candidates; a malformed one is as good as none. */
export function wellFormedId(...candidates: readonly (string | undefined)[]): string | undefined {
  return candidates.find((candidate) => candidate !== undefined && ID.test(candidate));
}

export interface Session {
  readonly id: string;
  readonly isNew: boolean;
}

/** Keeps the session that the caller names where the store knows it for this profile and it isn't idle; else a new one. */
export function continueSession(
  named: string | undefined,
  known: ProfileRecord['session'],
  now: number,
): Session {
  const alive = known !== null && now - known.lastSeenAt <= SESSION_IDLE;
  return alive && known.id === named ? { id: known.id, isNew: false } : { id: randomId(), isNew: true };
}
