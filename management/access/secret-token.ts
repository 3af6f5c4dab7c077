import { hash, randomBytes } from 'node:crypto';

/** A new secret. Only its digest is stored. */
export function newSecret(prefix: 'tgy_' | 'tgi_' | 'tgh_'): {
  readonly value: string;
  readonly hash: string;
} {
  const value = `${prefix}${randomBytes(32).toString('base64url')}`;
  return { value, hash: hashOf(value) };
}

/** The digest that is stored. A secret has 256 random bits, so a slow digest would add nothing. */
export function hashOf(value: string): string {
  return hash('sha256', value, 'hex');
}
