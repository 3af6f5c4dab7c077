import type * as z from 'zod/mini';
import { parseJson } from '../base/json.ts';
import { within } from '../base/single-flight.ts';
import { EdgeError } from './errors.ts';

/** 64 KiB. The largest body contains a page's own cookies: in theory up to about 200 KB, in practice 8 KB. */
const MAX_BODY_OCTETS = 65_536;

/** Limits for draining a request's body. Beyond them the connection is cut. */
const MAX_DRAINED_OCTETS = 8 * 1_048_576;
const DRAIN_TIMEOUT_MS = 10_000;

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

const UTF_8 = ['utf-8', { fatal: true, ignoreBOM: true }] as const;
/** For whole texts only, because a decoder of chunks has a state. */
const whole = new TextDecoder(...UTF_8);

async function readText(request: Request): Promise<string> {
  const stated = Number(request.headers.get('content-length'));
  if (stated > MAX_BODY_OCTETS) throw new EdgeError('body_too_large');
  try {
    // The runtime reads no more octets than are stated. Reading them at once costs a third of reading chunks.
    if (stated > 0) return whole.decode(await request.arrayBuffer());
    const decoder = new TextDecoder(...UTF_8);
    let text = '';
    let octets = 0;
    for await (const chunk of chunksOf(request)) {
      octets += chunk.byteLength;
      if (octets > MAX_BODY_OCTETS) break;
      text += decoder.decode(chunk, { stream: true });
    }
    if (octets <= MAX_BODY_OCTETS) return text + decoder.decode();
  } catch (cause) {
    throw new EdgeError('malformed_request', { detail: 'The body is not UTF-8 text', cause });
  }
  throw new EdgeError('body_too_large');
}

/** The chunks of a request's body. After an early exit the rest can still be read. */
const chunksOf = ({ body }: Request): AsyncIterable<Uint8Array> | [] =>
  body?.values({ preventCancel: true }) ?? [];

/**
 * Returns a response that sends its whole body at once, but ends only after the rest of the request's body is read and
 * dropped. Otherwise unread octets would reset the connection, and the client would not receive the answer.
 */
export async function endingAfter(request: Request, response: Response): Promise<Response> {
  const { body, method } = request;
  if (body === null || body.locked || method === 'HEAD') return response;
  const octets = await response.arrayBuffer();
  const { readable, writable } = new FixedLengthStream(octets.byteLength);
  void end(writable.getWriter(), octets, request);
  return new Response(readable, response);
}

/** Ignores errors: reading and writing fail if the client has disconnected and needs no answer. */
async function end(
  writer: WritableStreamDefaultWriter,
  octets: ArrayBuffer,
  request: Request,
): Promise<void> {
  try {
    await writer.write(new Uint8Array(octets));
    await within(drain(request), DRAIN_TIMEOUT_MS).catch(() => undefined);
    await writer.close();
  } catch {}
}

async function drain(request: Request): Promise<void> {
  let octets = 0;
  for await (const chunk of chunksOf(request)) {
    octets += chunk.byteLength;
    if (octets > MAX_DRAINED_OCTETS) break;
  }
}
