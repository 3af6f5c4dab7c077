import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import fastify, { type FastifyInstance } from 'fastify';
import { afterEach, expect, test } from 'vitest';
import { answerEarlyFaults, clientErrorHandler } from '../../../base/http/client-errors.ts';
import { ProblemError, type ProblemOptions } from '../../../base/http/problem.ts';
import { type ProblemService, problemAnswer } from '../../../base/http/problem-answer.ts';
import { eventually } from '../../support/eventually.ts';
import { sendBytes } from '../../support/refused-requests.ts';

const TABLE = {
  bad: [400, 'Bad'],
  late: [408, 'Late'],
  busy: [429, 'Busy'],
  stopping: [503, 'Stopping'],
} as const;
class Problem extends ProblemError<typeof TABLE> {
  constructor(code: keyof typeof TABLE, options: ProblemOptions = {}) {
    super(TABLE, code, options);
  }
}
const SERVICE: ProblemService<keyof typeof TABLE> = {
  Problem,
  SitesRepoError: class extends Error {
    readonly refusal = null;
  },
  codes: {
    schema: 'bad',
    clientError: 'bad',
    byStatus: { 408: 'late', 413: 'bad', 414: 'bad', 415: 'bad', 417: 'bad', 431: 'bad' },
    tooMany: 'busy',
    stopping: 'stopping',
    sitesRepo: 'bad',
    commitRefused: 'bad',
    internal: 'bad',
  },
};

let app: FastifyInstance = fastify();
afterEach(() => app.close());

interface Serving {
  readonly logs?: string[];
  readonly stopAfter?: Promise<void>;
  readonly trustProxy?: boolean;
}

const serve = async ({ logs = [], stopAfter, trustProxy = false }: Serving = {}) => {
  app = fastify({
    trustProxy,
    clientErrorHandler: clientErrorHandler(SERVICE),
    return503OnClosing: false,
    http: { connectionsCheckingInterval: 10, headersTimeout: 50 },
    logger: { level: 'info', stream: { write: (line: string) => logs.push(line) } },
  });
  app.setErrorHandler(problemAnswer(SERVICE));
  answerEarlyFaults(app, SERVICE);
  app.addHook('preClose', async () => await stopAfter);
  app.get('/', () => 'fine');
  app.post('/', () => 'fine');
  const refuse = async () => {
    throw new Problem('bad');
  };
  app.post('/refused', { onRequest: refuse }, () => 'fine');
  app.get('/stream', (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'text/plain' });
    reply.raw.write('begun');
  });
  return await app.listen({ host: '127.0.0.1', port: 0 });
};

test('headers that don’t end in time are answered with 408', async () => {
  const answer = await sendBytes(await serve(), 'GET / HTTP/1.1\r\nhost: a\r\n');
  expect([answer.status, JSON.parse(answer.body)]).toMatchObject([408, { code: 'late', title: 'Late' }]);
});

test('the log has the answer’s id and the reason, and nothing of what the client sent', async () => {
  const logs: string[] = [];
  const answer = await sendBytes(
    await serve({ logs }),
    'GET / HTTP/1.1\r\nx-secret: s3cret\r\nbad header\r\n\r\n',
  );
  const line = logs.find((text) => text.includes(answer.headers['x-request-id'] ?? '?'));
  expect(JSON.parse(line ?? '{}')).toMatchObject({ reason: expect.stringMatching(/^HPE_/), status: 400 });
  expect(logs.join('')).not.toMatch(/s3cret|rawPacket/);
});

test('an answer that has begun is cut, and no second one is written into it', async () => {
  const { hostname, port } = new URL(await serve());
  const socket = connect(Number(port), hostname);
  socket.write('GET /stream HTTP/1.1\r\nhost: a\r\n\r\n');
  const [first] = await once(socket, 'data');
  socket.write('GARBAGE\r\n\r\n');
  const rest = await text(socket).catch(() => '');
  expect(String(first) + rest).toMatch(/^HTTP\/1\.1 200 /);
  expect(String(first) + rest).not.toContain('HTTP/1.1 400');
});

test('a request on an open connection while the service stops is answered with a problem, too', async () => {
  const gate = Promise.withResolvers<void>();
  const { hostname, port } = new URL(await serve({ stopAfter: gate.promise }));
  const socket = connect(Number(port), hostname);
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  await once(socket, 'data');
  const closed = app.close();
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const answer = await text(socket);
  gate.resolve();
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 503 /);
  expect(answer).toContain('"code":"stopping"');
});

test('an address may send a hundred bodies at once, and another one when one of them has ended', async () => {
  const { hostname, port } = new URL(await serve({ trustProxy: true }));
  const head = (address: string) =>
    `POST / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: ${address}\r\ncontent-type: text/plain\r\ncontent-length: 2\r\nconnection: close\r\n\r\n`;
  const status = async (address: string) =>
    (await sendBytes(`http://${hostname}:${port}`, `${head(address)}ok`)).status;
  const open: Socket[] = [];
  try {
    for (let n = 0; n < 100; n += 1) {
      const socket = connect(Number(port), hostname);
      socket.write(`${head('192.0.2.1')}o`);
      open.push(socket);
    }
    await eventually(async () => expect(await status('192.0.2.1')).toBe(429));
    expect(await status('192.0.2.2')).toBe(200);
    open[0]?.write('k');
    open[1]?.destroy();
    await eventually(async () => expect(await status('192.0.2.1')).toBe(200));
  } finally {
    for (const socket of open) socket.destroy();
  }
});

test('a body whose request is refused before it has arrived counts no more', async () => {
  const { hostname, port } = new URL(await serve());
  const refused: Socket[] = [];
  try {
    for (let n = 0; n < 101; n += 1) {
      const socket = connect(Number(port), hostname);
      refused.push(socket);
      socket.write('POST /refused HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\no');
      const [answer] = await once(socket, 'data');
      expect(String(answer)).toMatch(/^HTTP\/1\.1 400 /);
    }
  } finally {
    for (const socket of refused) socket.destroy();
  }
});

test('injected requests, whose bodies are here already, don’t count', async () => {
  await serve();
  for (let n = 0; n <= 100; n += 1) {
    const headers = { 'content-type': 'application/unknown' };
    const { statusCode } = await app.inject({ method: 'POST', url: '/', headers, payload: 'x' });
    expect(statusCode).toBe(400);
  }
});
