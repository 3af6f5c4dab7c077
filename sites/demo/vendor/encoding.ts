import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';

const CODERS = [
  ['br', promisify(brotliCompress)],
  ['gzip', promisify(gzip)],
] as const;

/** Compresses `body` with brotli or else gzip if `accept-encoding` allows it; `q=0` forbids a coding. */
export async function encode(
  body: string,
  accepted: string,
): Promise<{ coding: string | null; bytes: Buffer }> {
  const named = accepted.split(',').map((part) => part.trim().toLowerCase());
  for (const [coding, compress] of CODERS) {
    const wanted = named.some(
      (part) => part === coding || (part.startsWith(`${coding};`) && !/q=0(?:\.0*)?$/.test(part)),
    );
    if (wanted) return { coding, bytes: await compress(Buffer.from(body)) };
  }
  return { coding: null, bytes: Buffer.from(body) };
}
