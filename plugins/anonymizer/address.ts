/** The address without what tells apart the visitors of a network; `null` if it isn't one. */
export function cutAddress(address: string): string | null {
  // The URL parser knows each spelling of an address and writes one: `[2001:db8::1]`.
  const host = URL.parse(`http://${address.includes(':') ? `[${address}]` : address}/`)?.hostname;
  if (host === undefined) return null;
  const mapped = /^\[::ffff:([0-9a-f]{1,4}):[0-9a-f]{1,4}\]$/.exec(host);
  if (mapped !== null) return '::';
  if (!host.startsWith('[')) return /^[\d.]+$/.test(host) ? host.replace(/\d+$/, '0') : null;
  const [before = '', after] = host.slice(1, -1).split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after ? after.split(':') : [];
  const missing = after === undefined ? 0 : 8 - head.length - tail.length;
  const groups = [...head, ...Array<string>(missing).fill('0'), ...tail];
  return URL.parse(`http://[${groups.slice(0, 3).join(':')}::]/`)?.hostname.slice(1, -1) ?? null;
}
