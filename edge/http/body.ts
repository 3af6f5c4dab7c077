import type * as z from 'zod/mini';
import { parseJson } from '../base/json.ts';
import { EdgeError } from './errors.ts';

/** 64 KiB: a page's own cookies are at most about 200 KB in theory and 8 KB in practice. */
export const MAX_BODY_OCTETS = 65_536;

/** How much of a body is read only to be dropped; whoever sends more is cut off. */
const MAX_DRAINED_OCTETS = 8 * 1_048_576;

/** Reads and checks a JSON body; members that the schema doesn't know are dropped. */
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
  if (Number(request.headers.get('content-length')) > MAX_BODY_OCTETS) throw new EdgeError('body_too_large');
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  let text = '';
  try {
    const octets = await read(request, (chunk) => {
      text += decoder.decode(chunk, { stream: true });
    });
    if (octets <= MAX_BODY_OCTETS) return text + decoder.decode();
  } catch (cause) {
    throw new EdgeError('malformed_request', { detail: 'The body is not UTF-8 text', cause });
  }
  throw new EdgeError('body_too_large');
}

/** Reads a body that nobody wanted and drops it. */
export async function drain(request: Request): Promise<void> {
  // The client may be gone, and with it whoever wanted the answer.
  if (!request.bodyUsed) await read(request).catch(() => undefined);
}

/**
 * Reads a body and answers its octets, of which it hands on no more than a body may have. What is too much is read to
 * the end (or to a bound) and dropped, whatever length was stated: a connection with unread octets is reset, and the
 * client would see that in place of the answer.
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
