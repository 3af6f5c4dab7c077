import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { openDoor } from '../../../../gitops/appliers/containers/port-gate.ts';
import { RetryableError } from '../../../../gitops/base/errors.ts';
import { eventually } from '../../../support/eventually.ts';

/** A server inside, and a door to it at a free port. */
async function house(options: { open?: () => Promise<void>; idleMs?: number } = {}) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    // Says it all back once the visitor has ended, with something of its own before.
    void buffer(socket).then((said) => socket.end(Buffer.concat([Buffer.from('heard '), said])));
    socket.on('error', () => undefined);
  }).listen(0, '127.99.5.6');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP
  let idles = 0;
  const door = await openDoor({
    at: { address: '127.99.5.7', port },
    to: { address: '127.99.5.6', port },
    open: options.open ?? (async () => undefined),
    idleMs: options.idleMs ?? 60_000,
    onIdle: () => {
      idles += 1;
    },
  });
  return {
    port,
    idles: () => idles,
    visit: () => connect({ host: '127.99.5.7', port, allowHalfOpen: true }),
    async [Symbol.asyncDispose]() {
      await door.close();
      server.close();
    },
  };
}

describe('a door', () => {
  test('hands on every byte both ways, also of what was said before it opened', async () => {
    const opening = Promise.withResolvers<void>();
    await using home = await house({ open: () => opening.promise });
    const said = 'x'.repeat(3_000_000);
    const visits = [home.visit(), home.visit()].map(async (socket) => {
      socket.end(said);
      return await text(socket);
    });
    opening.resolve();
    for (const answer of await Promise.all(visits)) expect(answer).toBe(`heard ${said}`);
  });

  test('lets nobody in where it can’t be opened', async () => {
    await using home = await house({ open: () => Promise.reject(new Error('no')) });
    expect(await text(home.visit())).toBe('');
  });

  test('says that nobody came for a while, once, and not while somebody is in', async () => {
    await using home = await house({ idleMs: 50 });
    await eventually(() => expect(home.idles()).toBe(1));
    const socket = home.visit();
    await once(socket, 'connect');
    // Another door has had the time to notice meanwhile.
    await using other = await house({ idleMs: 200 });
    await eventually(() => expect(other.idles()).toBe(1));
    expect(home.idles()).toBe(1);
    socket.destroy();
    await eventually(() => expect(home.idles()).toBe(2));
  });

  test('does not take a place that somebody has', async () => {
    await using home = await house();
    const at = { address: '127.99.5.7', port: home.port };
    const open = async () => undefined;
    const again = openDoor({ at, to: at, open, idleMs: 1_000, onIdle: () => undefined });
    await expect(again).rejects.toBeInstanceOf(RetryableError);
  });
});
