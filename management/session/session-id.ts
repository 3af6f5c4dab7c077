import { createHmac, hash, randomBytes } from 'node:crypto';

/** A session's id: 256 random bits. Only the browser has it. */
export function newSessionId(): string {
  return randomBytes(32).toString('base64url');
}

/** What the database has of it. */
export function sessionHash(id: string): string {
  return hash('sha256', id);
}

/** The token that a change by this session carries in `x-csrf-token`. */
export function csrfTokenOf(id: string): string {
  return createHmac('sha256', id).update('csrf').digest('base64url');
}
