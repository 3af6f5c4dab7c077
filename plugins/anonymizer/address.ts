import { canonicalHost, groupsOf } from '../addresses.ts';

/** The address without what tells apart the visitors of a network; `null` if it isn't one. */
export function cutAddress(address: string): string | null {
  const host = canonicalHost(address);
  if (host === undefined) return null;
  if (!host.startsWith('[')) return /^[\d.]+$/.test(host) ? host.replace(/\d+$/, '0') : null;
  return canonicalHost(`${groupsOf(host).slice(0, 3).join(':')}::`)?.slice(1, -1) ?? null;
}
