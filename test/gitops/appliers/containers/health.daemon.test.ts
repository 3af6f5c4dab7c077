import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { healthOf, staysHealthy, waitForHealth } from '../../../../gitops/appliers/containers/health.ts';
import type { Endpoint } from '../../../../gitops/appliers/containers/runtime.ts';
import { fakeClock } from '../../../support/fake-clock.ts';

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
    [503, 'unhealthy'],
    [404, 'unhealthy'],
  ])('depends on the status alone: %i is %s', async (status, health) => {
    await using server = await serve(({ url }, response) => {
      response.writeHead(url === '/healthz' ? status : 500).end('whatever');
    });
    expect(await healthOf(server.endpoint, signal)).toBe(health);
  });

  test('is unreachable if nothing listens, and if the server never answers', async () => {
    const gone = await serve(() => undefined);
    await gone[Symbol.asyncDispose]();
    expect(await healthOf(gone.endpoint, signal)).toBe('unreachable');
    await using mute = await serve(() => undefined);
    expect(await healthOf(mute.endpoint, signal)).toBe('unreachable');
  });

  test('is unreachable if the server switches protocols', async () => {
    await using server = await serve(({ socket }) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: other\r\n\r\n');
    });
    expect(await healthOf(server.endpoint, signal)).toBe('unreachable');
  });

  test('is not awaited after the caller has aborted', async () => {
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
  const death = async () => null;
  const wait = (endpoint: Endpoint) => waitForHealth(endpoint, { deadlineMs: 30_000, death }, signal);

  test('ends when the container is healthy', async () => {
    const answers = [503, 503, 200];
    await using server = await serve((_, response) => response.writeHead(answers.shift() ?? 500).end());
    expect(await wait(server.endpoint)).toBe('healthy');
    expect(answers).toEqual([]);
  });

  test('ends with the reason of the container’s death', async () => {
    await using server = await serve((_, response) => response.writeHead(503).end());
    const outcome = waitForHealth(
      server.endpoint,
      { deadlineMs: 30_000, death: async () => 'exit code 1' },
      signal,
    );
    expect(await outcome).toEqual({ death: 'exit code 1' });
  });

  test('is not delayed by other containers that never answer', async () => {
    let open = 0;
    await using mute = await serve(({ socket }) => {
      open += 1;
      socket.once('close', () => {
        open -= 1;
      });
    });
    const others = Array.from({ length: 3 }, () =>
      waitForHealth(mute.endpoint, { deadlineMs: 0, death }, signal),
    );
    await using server = await serve((_, response) => response.writeHead(200).end());
    expect(await wait(server.endpoint)).toBe('healthy');
    // At least one of their probes is not over yet.
    expect(open).toBeGreaterThan(0);
    expect(await Promise.all(others)).toEqual(['unreachable', 'unreachable', 'unreachable']);
  });

  test('ends with the last health at the deadline, and checks less and less often for a death', async () => {
    await using server = await serve((_, response) => response.writeHead(503).end());
    const clock = fakeClock();
    const askedAt: number[] = [];
    const options = {
      deadlineMs: 8_000,
      death: async () => {
        askedAt.push(clock.now());
        return null;
      },
      clock,
    };
    expect(await waitForHealth(server.endpoint, options, signal)).toBe('unhealthy');
    // A due check is made when the next probe ends (one ends every 150 ms); the last check is at the deadline.
    expect(askedAt).toEqual([1_100, 2_150, 4_250, 8_000]);
  });
});

describe('staying healthy', () => {
  const check = async (statuses: number[], death: string | null = null) => {
    await using server = await serve((_, response) => response.writeHead(statuses.shift() ?? 200).end());
    const options = { forMs: 500, death: async () => death, clock: fakeClock() };
    return await staysHealthy(server.endpoint, options, signal);
  };

  test.each([
    ['healthy', [], null, 'healthy'],
    ['unhealthy at the third probe', [200, 200, 503], null, 'unhealthy'],
    ['unhealthy only after the time', [200, 200, 200, 200, 200, 503], null, 'healthy'],
    ['dead', [200, 503], 'exit code 1', { death: 'exit code 1' }],
  ])('is judged by the first probe that fails: %s', async (_name, statuses, death, outcome) => {
    expect(await check(statuses, death)).toEqual(outcome);
  });
});
