import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { RetryableError } from '../../../../base/errors.ts';
import { openPortGate } from '../../../../gitops/appliers/containers/port-gate.ts';
import { eventually } from '../../../support/eventually.ts';

/** A server, and a gate in front of it on a free port. */
async function setup(options: { startTarget?: () => Promise<void>; idleMs?: number } = {}) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // Answers with everything that it received, once the client has ended its side.
    void buffer(socket).then((received) => socket.end(Buffer.concat([Buffer.from('received '), received])));
    socket.on('error', () => undefined);
  }).listen(0, '127.99.5.6');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  let idlePeriods = 0;
  const gate = await openPortGate({
    listen: { address: '127.99.5.7', port },
    target: { address: '127.99.5.6', port },
    startTarget: options.startTarget ?? (async () => undefined),
    idleMs: options.idleMs ?? 60_000,
    onIdle: () => {
      idlePeriods += 1;
    },
  });
  return {
    port,
    gate,
    idlePeriods: () => idlePeriods,
    connect: () => connect({ host: '127.99.5.7', port, allowHalfOpen: true }),
    async [Symbol.asyncDispose]() {
      await gate.close();
      server.close();
    },
  };
}

describe('a port gate', () => {
  test('forwards every byte both ways, including bytes sent before the target was up', async () => {
    const started = Promise.withResolvers<void>();
    await using host = await setup({ startTarget: () => started.promise });
    const sent = 'x'.repeat(3_000_000);
    const answers = [host.connect(), host.connect()].map(async (socket) => {
      socket.end(sent);
      return await text(socket);
    });
    started.resolve();
    for (const answer of await Promise.all(answers)) expect(answer).toBe(`received ${sent}`);
  });

  test('closes the connection if the target can’t be started', async () => {
    await using host = await setup({ startTarget: () => Promise.reject(new Error('no')) });
    expect(await text(host.connect())).toBe('');
  });

  test('reports once that it is idle, and not while a client is connected', async () => {
    await using host = await setup({ idleMs: 50 });
    await eventually(() => expect(host.idlePeriods()).toBe(1));
    const socket = host.connect();
    await once(socket, 'connect');
    // By the time this other gate becomes idle, the first one would have reported too.
    await using other = await setup({ idleMs: 200 });
    await eventually(() => expect(other.idlePeriods()).toBe(1));
    expect(host.idlePeriods()).toBe(1);
    expect(host.gate.hasClients()).toBe(true);
    socket.destroy();
    await eventually(() => expect(host.idlePeriods()).toBe(2));
  });

  test('does not open on a port in use', async () => {
    await using host = await setup();
    const listen = { address: '127.99.5.7', port: host.port };
    const startTarget = async () => undefined;
    const again = openPortGate({
      listen,
      target: listen,
      startTarget,
      idleMs: 1_000,
      onIdle: () => undefined,
    });
    await expect(again).rejects.toBeInstanceOf(RetryableError);
  });
});
