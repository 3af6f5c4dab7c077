import type * as z from 'zod/mini';
import { EdgeError } from './errors.ts';

/** 64 KiB: a page's own cookies are at most about 200 KB in theory and 8 KB in practice. */
export const MAX_BODY_OCTETS = 65_536;

/** How much of a body is read only to be dropped; whoever sends more is cut off. */
const MAX_DRAINED_OCTETS = 8 * 1_048_576;

/** Reads and checks a JSON body; members that the schema doesn't know are dropped. */
export async function readJson<T>(request: Request, schema: z.ZodMiniType<T>): Promise<T> {
  const parsed = schema.safeParse(parse(await readText(request)));
  if (parsed.success) return parsed.data;
  throw new EdgeError('malformed_request', {
    errors: parsed.error.issues.map(({ path, message }) => ({ path: path.join('.'), message })),
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new EdgeError('malformed_request', { detail: 'The body is not JSON', cause });
  }
}

async function readText(request: Request): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const stated = Number(request.headers.get('content-length'));
  if (stated > MAX_BODY_OCTETS) throw new EdgeError('body_too_large');
  let text = '';
  let octets = 0;
  try {
    // What is too much is read to the end (or to the bound of `drain`) and dropped, whatever length was stated.
    for await (const chunk of request.body ?? []) {
      octets += chunk.byteLength;
      if (octets <= MAX_BODY_OCTETS) text += decoder.decode(chunk, { stream: true });
      if (octets > MAX_DRAINED_OCTETS) break;
    }
    if (octets <= MAX_BODY_OCTETS) return text + decoder.decode();
  } catch (cause) {
    throw new EdgeError('malformed_request', { detail: 'The body is not UTF-8 text', cause });
  }
  throw new EdgeError('body_too_large');
}

/**
 * Reads a body that nobody wanted and drops it: a connection with unread octets is reset, and the client would see
 * that in place of the answer.
 */
export async function drain(request: Request): Promise<void> {
  if (request.body === null || request.bodyUsed) return;
  let octets = 0;
  try {
    for await (const chunk of request.body) {
      octets += chunk.byteLength;
      if (octets > MAX_DRAINED_OCTETS) return;
    }
  } catch {
    // The client is gone, and with it whoever wanted the answer.
  }
}
