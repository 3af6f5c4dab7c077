/** JSON with object keys sorted and undefined members dropped, so that equal data has equal text. */
export function canonicalJson(value: unknown): string {
  // A replacer in place of the copy takes several times as long.
  return JSON.stringify(sorted(value, ''));
}

function sorted(value: unknown, key: string): unknown {
  const plain = hasToJson(value) ? value.toJSON(key) : value;
  if (typeof plain !== 'object' || plain === null) return plain;
  if (Array.isArray(plain)) return plain.map((item, index) => sorted(item, String(index)));
  const members = plain as Readonly<Record<string, unknown>>;
  const names = Object.keys(members).sort();
  return Object.fromEntries(names.map((name) => [name, sorted(members[name], name)]));
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  return (
    typeof value === 'object' && value !== null && 'toJSON' in value && typeof value.toJSON === 'function'
  );
}
