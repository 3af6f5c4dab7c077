/** JSON with object keys sorted and undefined members dropped, so that equal data has equal text. */
export function canonicalJson(value: unknown): string {
  // A replacer in place of the copy takes several times as long.
  return JSON.stringify(sorted(value, ''));
}

function sorted(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const plain = hasToJson(value) ? value.toJSON(key) : value;
  if (typeof plain !== 'object' || plain === null) return plain;
  if (Array.isArray(plain)) return plain.map((item, index) => sorted(item, String(index)));
  const members = plain as Readonly<Record<string, unknown>>;
  const copy: Record<string, unknown> = {};
  for (const name of sortedNames(members)) {
    const member = sorted(members[name], name);
    // A plain assignment to `__proto__` would set the prototype.
    if (name === '__proto__') Object.defineProperty(copy, name, { value: member, enumerable: true });
    else copy[name] = member;
  }
  return copy;
}

/** Many objects have their members in order: a comparison takes less time than to sort them. */
function sortedNames(members: object): string[] {
  const names = Object.keys(members);
  let before = '';
  for (const name of names) {
    if (name < before) return names.sort();
    before = name;
  }
  return names;
}

function hasToJson(value: object): value is { toJSON(key: string): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function';
}
