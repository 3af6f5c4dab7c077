import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const ALGORITHM = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** The secret that only the caller has, and what is sealed with it: each purpose has a key of its own. */
interface Seal {
  readonly secret: string;
  readonly purpose: 'session tokens' | 'answers';
}

/** Encrypts with a key that only the secret yields: a reader of the database learns nothing. */
export function seal(by: Seal, value: object): string {
  const iv = randomBytes(IV_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(by), iv);
  const text = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64');
}

/** Throws if the secret is another one, or the text was changed. */
export function unseal(by: Seal, sealed: string): unknown {
  const bytes = Buffer.from(sealed, 'base64');
  const decipher = createDecipheriv(ALGORITHM, keyOf(by), bytes.subarray(0, IV_BYTES));
  decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
  const text = Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
  return JSON.parse(text.toString('utf8'));
}

function keyOf({ secret, purpose }: Seal): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', `tagyard ${purpose}`, 32));
}
