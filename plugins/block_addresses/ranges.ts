import { canonicalHost, groupsOf } from '../addresses.ts';

/** An address as bits: 32 or 128 digits, 0 or 1; `undefined` if it isn't one. IPv4 in IPv6 counts as IPv4. */
function bitsOf(address: string): string | undefined {
  const host = canonicalHost(address);
  if (host === undefined) return undefined;
  if (!host.startsWith('[')) {
    const octets = host.split('.');
    const isV4 = octets.length === 4 && octets.every((octet) => /^\d+$/.test(octet));
    return isV4 ? octets.map((octet) => Number(octet).toString(2).padStart(8, '0')).join('') : undefined;
  }
  const bits = groupsOf(host)
    .map((group) => Number.parseInt(group, 16).toString(2).padStart(16, '0'))
    .join('');
  const mapped = '0'.repeat(80) + '1'.repeat(16);
  return bits.startsWith(mapped) ? bits.slice(96) : bits;
}

/** Tells whether an address is in one of the ranges. A range that isn't valid contains nothing. */
export function rangeMatcher(ranges: readonly string[]): (address: string) => boolean {
  const starts = ranges.flatMap((range) => {
    const [address = '', length] = range.split('/');
    const bits = bitsOf(address);
    if (bits === undefined) return [];
    // The prefix of `::ffff:192.0.2.0/120` counts from the beginning of 128 bits.
    const skipped = address.includes(':') && bits.length === 32 ? 96 : 0;
    const kept = length === undefined ? bits.length : Number(length) - skipped;
    return kept < 0 ? [] : [{ size: bits.length, start: bits.slice(0, kept) }];
  });
  return (address) => {
    const bits = bitsOf(address);
    return (
      bits !== undefined && starts.some(({ size, start }) => size === bits.length && bits.startsWith(start))
    );
  };
}
