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
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
