/** An address as the URL parser writes it, IPv6 in brackets; `undefined`: no address and no host name. */
export function canonicalHost(address: string): string | undefined {
  return URL.parse(`http://${address.includes(':') ? `[${address}]` : address}/`)?.hostname;
}

/**
 * The eight groups of an IPv6 address as `canonicalHost` writes it.
 *
 * @example
 * groupsOf('[2001:db8::1]'); // ['2001', 'db8', '0', '0', '0', '0', '0', '1']
 */
export function groupsOf(host: string): string[] {
  const [before = '', after] = host.slice(1, -1).split('::');
  const groups = (part: string | undefined) => (part ? part.split(':') : []);
  const zeros = after === undefined ? 0 : 8 - groups(before).length - groups(after).length;
  return [...groups(before), ...Array<string>(zeros).fill('0'), ...groups(after)];
}
