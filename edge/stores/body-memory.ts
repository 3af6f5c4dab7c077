import type { CacheScope, SharedBody } from '../../plugins/contract.ts';

/** Octets of bodies kept in memory. An isolate has 128 MB for everything. */
const MAX_OCTETS = 16 * 1_048_576;

/**
 * Bodies by scope and key. A full memory is cleared as a whole, for all scopes. Until then, a key that is put twice
 * counts twice.
 */
export function bodyMemory(): (scope: string) => CacheScope['memory'] {
  const bodies = new Map<string, SharedBody>();
  let octets = 0;
  return (scope) => ({
    get: (key) => bodies.get(scope + key),
    put(key, body) {
      octets += body.body.byteLength;
      if (octets > MAX_OCTETS) {
        octets = body.body.byteLength;
        bodies.clear();
      }
      bodies.set(scope + key, body);
    },
  });
}
