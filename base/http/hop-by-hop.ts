/** Fields of one connection (RFC 9110, 7.6.1). Node itself handles `transfer-encoding`. */
const CONNECTION_FIELDS = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
]);

/**
 * Raw headers (`[name, value, name, value, …]`) in their order and spelling. Drops the fields of the connection, those
 * that `Connection` names, and those in `without` (in lower case).
 */
export function endToEndHeaders(raw: readonly string[], without: readonly string[] = []): string[] {
  const pairs = Array.from({ length: raw.length / 2 }, (_, index) => [
    raw[2 * index] ?? '',
    raw[2 * index + 1] ?? '',
  ]);
  const named = pairs
    .filter(([name = '']) => name.toLowerCase() === 'connection')
    .flatMap(([, value = '']) =>
      value
        .toLowerCase()
        .split(',')
        .map((name) => name.trim()),
    );
  const dropped = new Set([...CONNECTION_FIELDS, ...named, ...without]);
  return pairs.filter(([name = '']) => !dropped.has(name.toLowerCase())).flat();
}
