import type * as z from 'zod/mini';
import { parseJson } from '../base/json.ts';
import { EdgeError } from './errors.ts';

/** 64 KiB. The largest body contains a page's own cookies: in theory up to about 200 KB, in practice 8 KB. */
const MAX_BODY_OCTETS = 65_536;

/** Reading stops after this many octets of a body; then the connection is cut. */
const MAX_DRAINED_OCTETS = 8 * 1_048_576;

/** Reads a JSON body and parses it by the schema, which drops unknown members. */
export async function readJson<T>(request: Request, schema: z.ZodMiniType<T>): Promise<T> {
  const value = parseJson(await readText(request));
  if (value === undefined) throw new EdgeError('malformed_request', { detail: 'The body is not JSON' });
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new EdgeError('malformed_request', {
    errors: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })),
  });
}

async function readText(request: Request): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let text = '';
  try {
    const tooLarge =
      Number(request.headers.get('content-length')) > MAX_BODY_OCTETS ||
      (await read(request, (chunk) => {
        text += decoder.decode(chunk, { stream: true });
      })) > MAX_BODY_OCTETS;
    if (!tooLarge) return text + decoder.decode();
  } catch (cause) {
    throw new EdgeError('malformed_request', { detail: 'The body is not UTF-8 text', cause });
  }
  throw new EdgeError('body_too_large');
}

/** Reads and drops the body, unless it has been read already. */
export async function drain(request: Request): Promise<void> {
  // Reading fails if the client has disconnected; then nothing waits for the answer.
  if (!request.bodyUsed) await read(request).catch(() => undefined);
}

/**
 * Reads a body and returns its number of octets; `take` gets the chunks up to the size limit. The rest is read up to a
 * second limit and dropped. Otherwise the connection would be reset because of unread octets, and the client would not
 * receive the answer.
 */
async function read({ body }: Request, take?: (chunk: Uint8Array) => void): Promise<number> {
  let octets = 0;
  for await (const chunk of body ?? []) {
    octets += chunk.byteLength;
    if (octets <= MAX_BODY_OCTETS) take?.(chunk);
    if (octets > MAX_DRAINED_OCTETS) break;
  }
  return octets;
}
