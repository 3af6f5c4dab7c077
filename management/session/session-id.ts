import { createCipheriv, createDecipheriv, createHmac, hash, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

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

/** Encrypts with a key that only the session's id yields: who reads the database learns nothing. */
export function seal(id: string, value: object): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(id), iv);
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64');
}

/** Throws if the id is another one, or the text was changed. */
export function unseal(id: string, sealed: string): unknown {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(ALGORITHM, keyOf(id), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  return JSON.parse(text.toString('utf8'));
}

function keyOf(id: string): Buffer {
  return Buffer.from(hkdfSync('sha256', id, '', 'tagyard session tokens', 32));
}
