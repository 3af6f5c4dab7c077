import { once } from 'node:events';
import { createServer as createTcpServer } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type Call, Transport, warningsOf } from '../../../../gitops/kubernetes/client/transport.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { type Answerer, ScriptedServer } from '../../../support/kubernetes/scripted-server.ts';

const answer =
  (status: number, headers: Record<string, string> = {}): Answerer =>
  (_, response) =>
    void response.writeHead(status, headers).end('{}');
const cut: Answerer = (request) => request.socket.destroy();

async function serve(...answers: readonly Answerer[]) {
  const server = await ScriptedServer.start(...answers);
  const clock = fakeClock();
  const transport = new Transport(server.config, clock);
  closeLater(transport, server);
  return { transport, seen: server.seen, clock };
}

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});
function closeLater(transport: Transport, server: ScriptedServer): void {
  opened.push(async () => {
    await transport.close();
    await server[Symbol.asyncDispose]();
  });
}

const call = (isRepeatable: boolean): Call => ({
  method: isRepeatable ? 'GET' : 'POST',
  path: '/',
  what: 'test',
  isRepeatable,
  signal: AbortSignal.timeout(60_000),
});

describe('a call', () => {
  test('is sent again after the pause that the API server asks for, even if it changes something', async () => {
    const { transport, seen, clock } = await serve(
      answer(429, { 'retry-after': '2' }),
      answer(503, { 'retry-after': '3' }),
      answer(200),
    );
    await transport.call(call(false));
    expect(seen).toHaveLength(3);
    expect(clock.now()).toBe(5_000);
  });

  test.each([
    ['a demand for a long pause', answer(429, { 'retry-after': '60' }), { reason: 'busy', retryAfter: 60 }],
    ['a failure that names no pause', answer(500), { reason: 'unavailable' }],
  ])('is not repeated after %s: its caller gets the error', async (_, answerer, error) => {
    const { transport, seen } = await serve(answerer);
    await expect(transport.call(call(true))).rejects.toMatchObject(error);
    expect(seen).toHaveLength(1);
  });

  test('ends after four answers that ask for a pause', async () => {
    const { transport, seen } = await serve(answer(429));
    await expect(transport.call(call(false))).rejects.toMatchObject({ reason: 'busy' });
    expect(seen).toHaveLength(4);
  });

  test('doesn’t time out while it waits for other calls, and ends at once when its caller aborts it', async () => {
    const server = await ScriptedServer.start((_, response) => {
      setTimeout(() => response.end('{}'), 500);
    });
    const transport = new Transport(server.config, fakeClock(), 1_200);
    closeLater(transport, server);
    // Eight at once: the last ones wait for a second before they are sent.
    const all = Array.from({ length: 24 }, () => transport.call(call(false)));
    const given = new AbortController();
    const waiting = transport.call({ ...call(true), signal: given.signal });
    given.abort(new Error('not any more'));
    await expect(waiting).rejects.toThrow('not any more');
    await Promise.all(all);
    expect(server.seen).toHaveLength(24);
  });

  test('whose answer is lost is sent again only where that is harmless', async () => {
    const harmless = await serve(cut, answer(200));
    await harmless.transport.call(call(true));
    expect(harmless.seen).toHaveLength(2);
    const other = await serve(cut, answer(200));
    await expect(other.transport.call(call(false))).rejects.toMatchObject({
      reason: 'unreachable',
      message: expect.stringMatching(
        /^Kubernetes: test: no answer: .*; whether it was carried out is unknown$/,
      ),
    });
    expect(other.seen).toHaveLength(1);
  });

  test('is sent once more with new credentials where the old ones are refused', async () => {
    const { transport, seen } = await serve(answer(401), answer(200));
    await transport.call(call(false));
    expect(seen.map(({ authorization }) => authorization)).toEqual(['token 0', 'token 1']);
    const refused = await serve(answer(401));
    await expect(refused.transport.call(call(true))).rejects.toMatchObject({ reason: 'unauthorized' });
    expect(refused.seen).toHaveLength(2);
  });

  test('ends with the reason of the caller that has aborted it', async () => {
    const { transport } = await serve(() => undefined);
    const end = new AbortController();
    const answered = transport.call({ ...call(true), signal: end.signal });
    end.abort(new Error('no longer needed'));
    await expect(answered).rejects.toThrow('no longer needed');
  });

  test('is not sent if its caller aborts it while credentials are read', async () => {
    const server = await ScriptedServer.start(answer(200));
    const read = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();
    const transport = new Transport({
      ...server.config,
      async credentials() {
        read.resolve();
        await gate.promise;
        return { tls: {}, headers: {} };
      },
    });
    closeLater(transport, server);
    const end = new AbortController();
    const aborted = transport.call({ ...call(false), signal: end.signal });
    await read.promise;
    end.abort(new Error('no longer needed'));
    await expect(aborted).rejects.toThrow('no longer needed');
    gate.resolve();
    await transport.call({ ...call(true), path: '/next' });
    expect(server.seen.map(({ url }) => url.pathname)).toEqual(['/next']);
  });

  test('ends in the middle of its answer, if its caller aborts it or the answer is late', async () => {
    const arrived = Promise.withResolvers<void>();
    const half: Answerer = (_, response) => {
      response.writeHead(200).write('{"a":', () => arrived.resolve());
    };
    const server = await ScriptedServer.start(half, half, answer(200));
    const transport = new Transport(server.config, fakeClock(), 1_000);
    closeLater(transport, server);
    const end = new AbortController();
    const aborted = transport.call({ ...call(false), signal: end.signal });
    await arrived.promise;
    end.abort(new Error('no longer needed'));
    await expect(aborted).rejects.toThrow('no longer needed');
    await expect(transport.call(call(false))).rejects.toMatchObject({
      reason: 'unreachable',
      message: 'Kubernetes: test: no answer: none within 1 s; whether it was carried out is unknown',
    });
    await transport.call(call(true));
    expect(server.seen).toHaveLength(3);
  });

  test('ends when its caller aborts it, also while its connection is being made', async () => {
    const silent = createTcpServer().listen({ port: 0, host: '127.0.0.1' });
    await once(silent, 'listening');
    const address = silent.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no port');
    const transport = new Transport({
      server: new URL(`https://127.0.0.1:${address.port}`),
      proxy: null,
      credentials: async () => ({ tls: {}, headers: {} }),
      forget: () => undefined,
    });
    const end = new AbortController();
    let outcome: unknown;
    void transport.call({ ...call(true), signal: end.signal }).catch((error: unknown) => {
      outcome = error;
    });
    const [socket] = await once(silent, 'connection');
    end.abort(new Error('no longer needed'));
    await new Promise((resolve) => setImmediate(resolve));
    expect(String(outcome)).toBe('Error: no longer needed');
    socket.destroy();
    silent.close();
    await transport.close();
  });
});

test('the texts of warnings are read from one header or several', () => {
  expect(warningsOf(undefined)).toEqual([]);
  expect(warningsOf('299 - "say \\"a\\", b", 299 - "c"')).toEqual(['say "a", b', 'c']);
  expect(warningsOf(['299 - "a"', '299 - "b"'])).toEqual(['a', 'b']);
});
