/** Sets an entry of a map of at most `limit` entries. A new key in a full map first drops the entry set longest ago. */
export function setBounded<Key, Value>(map: Map<Key, Value>, limit: number, key: Key, value: Value): void {
  // Delete the key first: setting an existing key would keep its old position.
  map.delete(key);
  if (map.size >= limit) map.delete(map.keys().next().value as Key);
  map.set(key, value);
}
