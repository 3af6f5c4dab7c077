import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';

/** A bucket of raw logs in memory, with its objects by key. */
export function memoryObjects(): RawObjects & { readonly stored: Map<string, Buffer> } {
  const stored = new Map<string, Buffer>();
  return {
    stored,
    async *list(prefix, after = '') {
      for (const key of [...stored.keys()].sort()) {
        if (key.startsWith(prefix) && key > after) yield { key, size: stored.get(key)?.length ?? 0 };
      }
    },
    read: async (key) => stored.get(key) ?? null,
    write: async (key, body) => void stored.set(key, body),
    remove: async (key) => void stored.delete(key),
  };
}
