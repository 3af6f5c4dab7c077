import type { IncomingMessage, ServerResponse } from 'node:http';

/** One request with its response and the parts of its URL. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  readonly path: string;
  /** The raw query without `?`. */
  readonly query: string;
}

export function openExchange(request: IncomingMessage, response: ServerResponse): Exchange {
  const [path = '/', ...rest] = (request.url ?? '/').split('?');
  return { request, response, method: request.method ?? 'GET', path, query: rest.join('?') };
}

interface Answer {
  /** Default: `text/plain`. */
  readonly type?: string;
  /** Default: empty. */
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** Answers with a `content-length`, never chunked. */
export function sendAnswer(
  { response }: Exchange,
  status: number,
  { type = 'text/plain', body = '', headers = {} }: Answer = {},
): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
  response.end(body);
}

/** The largest body that is read: no hop in front of a tag server passes a larger one on (docs/http.md). */
const MOST_BYTES = 8 * 1024 * 1024;

/** The body as text. `null` if it is too large; a 413 has then been sent. */
export async function readBody(exchange: Exchange): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of exchange.request as AsyncIterable<Buffer>) {
    // The request has no encoding set, so its chunks are buffers.
    size += chunk.length;
    if (size <= MOST_BYTES) chunks.push(chunk);
  }
  if (size > MOST_BYTES) {
    sendAnswer(exchange, 413, { body: 'Payload Too Large' });
    return null;
  }
  return Buffer.concat(chunks).toString();
}
