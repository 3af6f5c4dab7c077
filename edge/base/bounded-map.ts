/** Sets an entry of a map that has at most `limit`: beyond it, the entry is dropped that was set longest ago. */
export function setBounded<Key, Value>(map: Map<Key, Value>, limit: number, key: Key, value: Value): void {
  // Deleted first, because a map keeps the position of a key that it has.
  map.delete(key);
  if (map.size >= limit) map.delete(map.keys().next().value as Key);
  map.set(key, value);
}
