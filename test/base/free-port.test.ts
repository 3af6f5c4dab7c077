import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { freePort } from '../../base/free-port.ts';

const HOST = '127.0.0.1';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
async function listenOn(port: number): Promise<number> {
  const server = createServer().listen(port, HOST);
  servers.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('0 is any port, and the port is closed again', async () => {
  const port = await freePort(HOST, 0);
  expect(port).toBeGreaterThan(0);
  expect(await listenOn(port ?? 0)).toBe(port);
});

const RANGE = '/proc/sys/net/ipv4/ip_local_port_range';
const [from = 0, to = 0] = existsSync(RANGE)
  ? readFileSync(RANGE, 'utf8').trim().split(/\s+/).map(Number)
  : [];
// Where the system's range begins lower than by default, a picked port may be in it.
test.skipIf(from < 20_000)(
  '0 is none of the ports that the system gives to outgoing connections by default',
  async () => {
    const picked = await Promise.all(Array.from({ length: 20 }, () => freePort(HOST, 0)));
    expect(picked.filter((port) => port === null || (port >= from && port <= to))).toEqual([]);
  },
);

test('a free port is returned, and one in use is null', async () => {
  const port = await listenOn(0);
  expect(await freePort(HOST, port)).toBeNull();
  const [server] = servers.splice(0);
  server?.close();
  await once(server as Server, 'close');
  expect(await freePort(HOST, port)).toBe(port);
});

test('an address of another machine is an error', async () => {
  // TEST-NET-1 (RFC 5737)
  await expect(freePort('192.0.2.1', 0)).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' });
});
