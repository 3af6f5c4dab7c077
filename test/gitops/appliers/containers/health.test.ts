import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { healthOf, waitForHealth } from '../../../../gitops/appliers/containers/health.ts';
import type { Endpoint } from '../../../../gitops/appliers/containers/runtime.ts';

const { signal } = new AbortController();

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo; // it listens on TCP
  return {
    endpoint: { address, port },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

describe('health', () => {
  test.each([
    [200, 'healthy'],
    [503, 'unwell'],
    [404, 'unwell'],
  ])('is by the status alone: %i is %s', async (status, health) => {
    await using server = await serve(({ url }, response) => {
      response.writeHead(url === '/healthz' ? status : 500).end('whatever');
    });
    expect(await healthOf(server.endpoint, signal)).toBe(health);
  });

  test('is silent where nobody listens, and where somebody never answers', async () => {
    const gone = await serve(() => undefined);
    await gone[Symbol.asyncDispose]();
    expect(await healthOf(gone.endpoint, signal)).toBe('silent');
    await using mute = await serve(() => undefined);
    expect(await healthOf(mute.endpoint, signal)).toBe('silent');
  });

  test('is silent where something else than HTTP is wanted', async () => {
    await using server = await serve(({ socket }) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n');
    });
    expect(await healthOf(server.endpoint, signal)).toBe('silent');
  });

  test('is not waited for by who gives up', async () => {
    const asked = Promise.withResolvers<void>();
    await using mute = await serve(() => asked.resolve());
    const stop = new AbortController();
    const health = expect(healthOf(mute.endpoint, stop.signal)).rejects.toThrow(/abort/);
    await asked.promise;
    stop.abort();
    await health;
  });
});

describe('waiting for health', () => {
  const lost = async () => null;
  const wait = (endpoint: Endpoint) => waitForHealth(endpoint, { deadlineMs: 30_000, lost }, signal);

  test('goes on until it is healthy', async () => {
    const answers = [503, 503, 200];
    await using server = await serve((_, response) => response.writeHead(answers.shift() ?? 500).end());
    expect(await wait(server.endpoint)).toBe('healthy');
    expect(answers).toEqual([]);
  });

  test('ends with the reason that it isn’t running any more', async () => {
    await using server = await serve((_, response) => response.writeHead(503).end());
    const outcome = waitForHealth(
      server.endpoint,
      { deadlineMs: 30_000, lost: async () => 'exit code 1' },
      signal,
    );
    expect(await outcome).toEqual({ death: 'exit code 1' });
  });

  test('is not held up by others that take a question and never answer', async () => {
    let open = 0;
    await using mute = await serve(({ socket }) => {
      open += 1;
      socket.once('close', () => {
        open -= 1;
      });
    });
    const others = Array.from({ length: 3 }, () =>
      waitForHealth(mute.endpoint, { deadlineMs: 0, lost }, signal),
    );
    await using server = await serve((_, response) => response.writeHead(200).end());
    expect(await wait(server.endpoint)).toBe('healthy');
    // None of their questions is over yet.
    expect(open).toBeGreaterThan(0);
    expect(await Promise.all(others)).toEqual(['silent', 'silent', 'silent']);
  });
});
