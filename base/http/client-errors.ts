import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { finished } from 'node:stream';
import type { ConnectionError, FastifyInstance } from 'fastify';
import { type ProblemService, problemHeaders } from './problem-answer.ts';
import { requestIdFrom } from './request-id.ts';

/** The error codes of Node's HTTP server that are answered with another status than 400. */
const STATUS_OF: Readonly<Record<string, 408 | 413 | 431>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

/** Bodies that one address may send at once. */
const MOST_BODIES = 100;

/** Fastify's options by which a request must be complete within a minute. */
export const RECEIVING = {
  requestTimeout: 60_000,
  http: { requireHostHeader: false, connectionsCheckingInterval: 5_000 },
} as const;

/** How long the rest of a refused request is read and dropped. */
const LINGER_MS = 2_000;

/** Fastify's `clientErrorHandler`: answers an unreadable request with a problem document, and closes the connection. */
export function clientErrorHandler<Code extends string>({ Problem, codes, headers }: ProblemService<Code>) {
  return function (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
    if (socket.writableEnded) return; // already answered: this is the rest of the request
    if (error.code === 'ECONNRESET' || !socket.writable || hasBegunAnswer(socket)) {
      socket.destroy(error);
      return;
    }
    const status = STATUS_OF[error.code];
    const problem = new Problem(status === undefined ? codes.clientError : codes.byStatus[status]);
    const id = requestIdFrom({});
    // Logs only the error's code: the error also has the bytes that were sent, and with them the caller's secrets.
    this.log.info({ reqId: id, reason: error.code, status: problem.status }, 'unreadable request');
    const body = JSON.stringify(problem.body(id));
    const fields = {
      ...problemHeaders(id, headers),
      'content-length': Buffer.byteLength(body),
      connection: 'close',
    };
    const head = [
      `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}`,
      ...Object.entries(fields).map(([name, value]) => `${name}: ${value}`),
    ];
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
    // If a connection is closed before everything is read, it is reset, and the answer may be lost (RFC 9112, 9.6).
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

/** True if the head of an answer is sent on the connection. Node's own handler of this error reads the same member. */
function hasBegunAnswer(
  socket: Socket & { readonly _httpMessage?: { readonly headersSent: boolean } },
): boolean {
  return socket._httpMessage?.headersSent === true;
}

/**
 * Refuses what Node and Fastify would answer without a problem document, and more than a hundred bodies that one address
 * sends at once. The options `http.requireHostHeader` and `return503OnClosing` must be `false`. Before you call this
 * function, add the hooks that check the caller.
 */
export function answerEarlyFaults<Code extends string>(
  app: FastifyInstance,
  { Problem, codes }: ProblemService<Code>,
): void {
  let isStopping = false;
  app.addHook('preClose', async () => {
    isStopping = true;
  });
  // Without a listener, Node itself answers a request with an unknown `Expect` header, with an empty body.
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response));
  app.addHook('onRequest', async ({ raw: { headers, httpVersion } }) => {
    if (isStopping) throw new Problem(codes.stopping);
    if (httpVersion === '1.1' && headers.host === undefined) {
      throw new Problem(codes.clientError, { detail: 'the request has no Host header' });
    }
    if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
      throw new Problem(codes.byStatus[417], { detail: 'the only known expectation is 100-continue' });
    }
  });
  const sending = new Map<string, number>();
  app.addHook('onRequest', async ({ raw, ip }, reply) => {
    const { 'content-length': length = '0', 'transfer-encoding': coding } = raw.headers;
    if (length === '0' && coding === undefined) return;
    const many = sending.get(ip) ?? 0;
    if (many >= MOST_BODIES) {
      throw new Problem(codes.tooMany, { detail: `${many} other bodies are arriving from this address` });
    }
    sending.set(ip, many + 1);
    let isCounted = true;
    const end = () => {
      if (!isCounted) return;
      isCounted = false;
      const left = (sending.get(ip) ?? 1) - 1;
      if (left === 0) sending.delete(ip);
      else sending.set(ip, left);
    };
    finished(raw, { writable: false }, end);
    finished(reply.raw, end); // what follows of a refused body is dropped
  });
}
