import { hash, randomBytes } from 'node:crypto';

/** The bytes of a secret that was never used. */
export const newSecretBytes = () => randomBytes(32);

/** A secret made of 32 bytes, and its digest, which alone is stored. */
export function secretOf(
  prefix: 'tgy_' | 'tgi_' | 'tgh_',
  bytes: Buffer,
): { readonly value: string; readonly hash: string } {
  const value = `${prefix}${bytes.toString('base64url')}`;
  return { value, hash: hashOf(value) };
}

/** The digest that is stored. A secret has 256 random bits, so a slow digest would add nothing. */
export function hashOf(value: string): string {
  return hash('sha256', value, 'hex');
}
