/** Returns that many bytes (at most 32) to make a value from; each call returns others. */
export type Draw = (bytes: number) => Buffer;

const BYTES = 6;

/** A whole number below 2^48. */
export function drawNumber(draw: Draw): number {
  return draw(BYTES).readUIntBE(0, BYTES);
}

/** A character of the alphabet. */
export function drawCharacter(draw: Draw, alphabet: string): string {
  return alphabet.charAt(drawNumber(draw) % alphabet.length);
}

/** A random UUID (RFC 9562, version 4). */
export function drawUuid(draw: Draw): string {
  const bytes = draw(16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [
    [0, 8],
    [8, 12],
    [12, 16],
    [16, 20],
    [20, 32],
  ]
    .map(([from, to]) => hex.slice(from, to))
    .join('-');
}
