import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { systemClock } from '../../../base/clock.ts';
import { dockerEvents } from '../../../gitops/clients/docker-events.ts';

/** An engine at a socket whose only call is `GET /events`. */
async function startEngine(socketPath: string): Promise<{ server: Server; stream: Promise<ServerResponse> }> {
  const { promise: stream, resolve } = Promise.withResolvers<ServerResponse>();
  const server = createServer((_request, response) => {
    response.flushHeaders();
    resolve(response);
  }).listen(socketPath);
  await once(server, 'listening');
  return { server, stream };
}

test('an engine that is back after a restart is noticed within two seconds, however long it was away', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-events-'));
  const socketPath = join(dir, 'docker.sock');
  const stop = new AbortController();
  const pauses: number[] = [];
  const wanted = Promise.withResolvers<void>();
  const clock = {
    sleep: async (ms: number) => {
      pauses.push(ms);
      if (pauses.length === 12) wanted.resolve();
      await systemClock.sleep(1);
    },
  };
  try {
    const first = await startEngine(socketPath);
    const events = dockerEvents(new Docker({ socketPath }), {}, stop.signal, clock);
    const name = events.next();
    (await first.stream).write('{"Actor":{"Attributes":{"name":"acme"}}}\n');
    expect(await name).toMatchObject({ value: 'acme' });

    const again = events.next();
    first.server.closeAllConnections();
    first.server.close();
    await wanted.promise;
    const second = await startEngine(socketPath);
    expect(await again).toMatchObject({ value: '' });
    expect(pauses[0]).toBeLessThanOrEqual(200);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(2_000);
    stop.abort();
    second.server.closeAllConnections();
    second.server.close();
    expect(await events.next()).toMatchObject({ done: true });
  } finally {
    await rm(dir, { recursive: true });
  }
});
