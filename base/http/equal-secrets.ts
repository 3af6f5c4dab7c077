import { hash, timingSafeEqual } from 'node:crypto';

/**
 * Compares two secrets in constant time. Digests of equal length are compared, so that the duration reveals neither
 * content nor length.
 */
export function equalSecrets(one: string, other: string): boolean {
  return timingSafeEqual(hash('sha256', one, 'buffer'), hash('sha256', other, 'buffer'));
}
