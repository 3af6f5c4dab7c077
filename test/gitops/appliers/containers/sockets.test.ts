import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { drained, released } from '../../../../gitops/appliers/containers/sockets.ts';

const { signal } = new AbortController();
const UNUSED = { address: '127.99.3.5', port: 1 };

async function listen() {
  const server = createServer().listen(0, '127.99.3.4');
  await once(server, 'listening');
  const { address, port } = server.address() as AddressInfo; // it listens on TCP
  return { server, endpoint: { address, port } };
}

describe('an endpoint of this host', () => {
  test('is drained once its last connection is closed', async () => {
    const { server, endpoint } = await listen();
    const client = connect(endpoint.port, endpoint.address);
    await once(client, 'connect');
    let over = false;
    const drain = drained(endpoint, { leastMs: 0, mostMs: 60_000 }, signal).then(() => {
      over = true;
    });
    // In this time, an endpoint without connections would be drained.
    await drained(UNUSED, { leastMs: 0, mostMs: 60_000 }, signal);
    await drained(UNUSED, { leastMs: 250, mostMs: 60_000 }, signal);
    expect(over).toBe(false);
    client.destroy();
    await drain;
    server.close();
  });

  test('counts as drained at the latest after `mostMs`', async () => {
    const { server, endpoint } = await listen();
    const client = connect(endpoint.port, endpoint.address);
    await once(client, 'connect');
    await drained(endpoint, { leastMs: 0, mostMs: 200 }, signal);
    client.destroy();
    server.close();
  });

  test('is released once no process listens', async () => {
    const { server, endpoint } = await listen();
    let over = false;
    const release = released(endpoint, signal).then(() => {
      over = true;
    });
    await drained(UNUSED, { leastMs: 250, mostMs: 60_000 }, signal);
    expect(over).toBe(false);
    server.close();
    await release;
  });
});
