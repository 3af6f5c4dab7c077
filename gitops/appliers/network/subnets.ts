import { overlap, type Range, sizeOf } from './ranges.ts';

/**
 * Prefix length of a site's subnet: 61 addresses besides the bridge's own. A swap of 16 replicas and a preview server
 * needs 34 at once.
 */
export const SUBNET_BITS = 26;

/** The first subnet in `ranges` that overlaps none of `taken`; `null` if there is none. */
export function freeSubnet(ranges: readonly Range[], taken: readonly Range[]): Range | null {
  const size = sizeOf(SUBNET_BITS);
  for (const range of ranges) {
    const obstacles = taken.filter((other) => overlap(range, other)).sort((a, b) => a.start - b.start);
    let start = range.start;
    for (const { start: first, bits } of obstacles) {
      if (first >= start + size) break;
      const end = first + sizeOf(bits);
      if (end > start) start = Math.ceil(end / size) * size;
    }
    if (start + size <= range.start + sizeOf(range.bits)) return { start, bits: SUBNET_BITS };
  }
  return null;
}
