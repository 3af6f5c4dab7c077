import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionError, FastifyInstance } from 'fastify';
import { type ProblemService, problemHeaders } from './problem-answer.ts';
import { requestIdFrom } from './request-id.ts';

/** The reasons of Node's HTTP server that aren't a 400. */
const STATUS_OF: Readonly<Record<string, 408 | 413 | 431>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

/** For so long the rest of a refused request is read and dropped. */
const LINGER_MS = 2_000;

/** Fastify's `clientErrorHandler`: answers bytes that are no request as a problem document, and closes the connection. */
export function clientErrorHandler<Code extends string>({ Problem, codes, headers }: ProblemService<Code>) {
  return function (this: FastifyInstance, error: ConnectionError, socket: Socket): void {
    if (socket.writableEnded) return; // the rest of a request that is answered
    if (error.code === 'ECONNRESET' || !socket.writable || hasBegunAnswer(socket)) {
      socket.destroy(error);
      return;
    }
    const status = STATUS_OF[error.code];
    const problem = new Problem(status === undefined ? codes.clientError : codes.byStatus[status]);
    const id = requestIdFrom({});
    // Of the error only its code: it also has the bytes that were sent, and with them the caller's secrets.
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
    // A connection that is closed before everything is read is reset, and the answer with it (RFC 9112, 9.6).
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}

/** Whether the head of an answer is sent on the connection. Node sets the member, and documents it only here. */
function hasBegunAnswer(
  socket: Socket & { readonly _httpMessage?: { readonly headersSent: boolean } },
): boolean {
  return socket._httpMessage?.headersSent === true;
}

/**
 * Refuses what Node and Fastify would answer without a problem document. Needs the options `http.requireHostHeader` and
 * `return503OnClosing` to be `false`, and hooks that check the caller to be added before it.
 */
export function answerEarlyFaults<Code extends string>(
  app: FastifyInstance,
  { Problem, codes }: ProblemService<Code>,
): void {
  let isStopping = false;
  app.addHook('preClose', async () => {
    isStopping = true;
  });
  // Without a listener Node answers such a request itself, with an empty body.
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
}
