import type { SharedBody, Shelf } from '../../plugins/contract.ts';

/** Octets of bodies that an isolate, which has 128 MB for everything, keeps in memory. */
const MAX_OCTETS = 16 * 1_048_576;

/**
 * Bodies by scope and key; where there is no more room it begins anew for all. What was put twice counts twice until
 * then.
 */
export function bodyMemory(): (scope: string) => Shelf['memory'] {
  const held = new Map<string, SharedBody>();
  let octets = 0;
  return (scope) => ({
    get: (key) => held.get(scope + key),
    put(key, body) {
      octets += body.body.byteLength;
      if (octets > MAX_OCTETS) {
        octets = body.body.byteLength;
        held.clear();
      }
      held.set(scope + key, body);
    },
  });
}
