import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import { brotliCompress, gzip } from 'node:zlib';
import accepts from 'accepts';

const CODERS = [
  ['br', promisify(brotliCompress)],
  ['gzip', promisify(gzip)],
] as const;

/** Compresses `body` with brotli or else gzip if the request’s `accept-encoding` allows it. */
export async function encode(
  body: string,
  request: IncomingMessage,
): Promise<{ coding: string | null; bytes: Buffer }> {
  const accepted = accepts(request);
  for (const [coding, compress] of CODERS) {
    if (accepted.encodings(coding) !== false) return { coding, bytes: await compress(Buffer.from(body)) };
  }
  return { coding: null, bytes: Buffer.from(body) };
}
