import type { IncomingMessage, ServerResponse } from 'node:http';

/** One request and its answer, with the address taken apart. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly path: string;
  /** Raw, without `?`. */
  readonly query: string;
}

export function openExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  const [path = '/', ...rest] = (request.url ?? '/').split('?');
  return { request, response, method: request.method ?? 'GET', path, query: rest.join('?') };
}

/** Answers with a body of a known length. */
export function sendAnswer(
  { response }: Exchange,
  status: number,
  type: string,
  body: string | Buffer,
  headers: Readonly<Record<string, string | string[]>> = {},
): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
  response.end(body);
}

/** More than this isn't read: GA4 batches stay far below. */
const MOST_BYTES = 256 * 1024;

/** The body as text; `null`, and a 413 to the caller, where there is too much of it. */
export async function readBody(exchange: Exchange): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of exchange.request as AsyncIterable<Buffer>) {
    // no encoding is set on the request, so its chunks are buffers
    size += chunk.length;
    if (size <= MOST_BYTES) chunks.push(chunk);
  }
  if (size > MOST_BYTES) {
    sendAnswer(exchange, 413, 'text/plain', 'Payload Too Large');
    return null;
  }
  return Buffer.concat(chunks).toString();
}
