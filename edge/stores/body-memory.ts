import type { CacheScope, SharedBody } from '../../plugins/contract.ts';

/** Octets of bodies kept in memory. An isolate has 128 MB for everything. */
const MAX_OCTETS = 16 * 1_048_576;

/** What an entry takes besides its body, roughly. */
const ENTRY_OCTETS = 1024;

/** Bodies by scope and key. A full memory drops those that were put longest ago. */
export function bodyMemory(): (scope: string) => CacheScope['memory'] {
  const bodies = new Map<string, SharedBody>();
  let octets = 0;
  const sizeOf = ({ body }: SharedBody) => body.byteLength + ENTRY_OCTETS;
  const remove = (key: string) => {
    const body = bodies.get(key);
    if (body !== undefined) octets -= sizeOf(body);
    bodies.delete(key);
  };
  return (scope) => ({
    get: (key) => bodies.get(scope + key),
    put(key, body) {
      remove(scope + key);
      bodies.set(scope + key, body);
      octets += sizeOf(body);
      for (const oldest of bodies.keys()) {
        if (octets <= MAX_OCTETS) break;
        remove(oldest);
      }
    },
  });
}
