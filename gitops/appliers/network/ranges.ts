/** An IPv4 range. `start` is its first address as a number, `bits` the length of its prefix. */
export interface Range {
  readonly start: number;
  readonly bits: number;
}

const CIDR = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?:\/(\d{1,2}))?$/;

/** Parses `10.0.0.0/8` or one address; `null` for other text. Address bits after the prefix are cleared. */
export function parseRange(text: string): Range | null {
  const [, ...parts] = CIDR.exec(text) ?? [];
  if (parts.length === 0) return null;
  const octets = parts.slice(0, 4).map(Number);
  const bits = Number(parts[4] ?? 32);
  if (bits > 32 || octets.some((octet) => octet > 255)) return null;
  const address = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  return { start: address - (address % sizeOf(bits)), bits };
}

/** Formats a range as `10.0.0.0/8`. */
export function formatRange({ start, bits }: Range): string {
  const octets = [24, 16, 8, 0].map((shift) => Math.floor(start / 2 ** shift) % 256);
  return `${octets.join('.')}/${bits}`;
}

/** True if the ranges have an address in common. */
export function overlap(one: Range, other: Range): boolean {
  return one.start < other.start + sizeOf(other.bits) && other.start < one.start + sizeOf(one.bits);
}

/** The number of addresses in a range with a prefix of this length. */
export function sizeOf(bits: number): number {
  return 2 ** (32 - bits);
}
