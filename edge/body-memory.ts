import type { PluginContext, SharedBody } from '../plugins/contract.ts';

/** Octets of bodies that an isolate, which has 128 MB for everything, keeps in memory. */
const MAX_OCTETS = 16 * 1_048_576;

/** Bodies by key; where there is no more room it begins anew. What was put twice counts twice until then. */
export function bodyMemory(): PluginContext['memory'] {
  const held = new Map<string, SharedBody>();
  let octets = 0;
  return {
    get: (key) => held.get(key),
    put(key, body) {
      octets += body.body.byteLength;
      if (octets > MAX_OCTETS) {
        octets = body.body.byteLength;
        held.clear();
      }
      held.set(key, body);
    },
  };
}
