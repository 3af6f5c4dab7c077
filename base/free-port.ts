import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Ports to pick for port 0: below those of containers (PORT_POOL), of Kubernetes' services (30000), and, by default,
 * of outgoing connections and servers that listen on 0 (Linux: 32768). So a picked port stays free until its server
 * starts, unless another server asks for just this port.
 */
const PICKED = { from: 10_000, to: 19_999 };
const TRIES = 50;

/**
 * Binds a TCP port of `host` (0: any free one), closes it again and returns it; `null` if it is in use. Rejects with the
 * system's error if it can't be bound for another reason (`EACCES`, `EADDRNOTAVAIL`).
 */
export async function freePort(host: string, port: number): Promise<number | null> {
  if (port !== 0) return await tryPort(host, port);
  for (let attempt = 0; attempt < TRIES; attempt += 1) {
    const picked = await tryPort(host, randomInt(PICKED.from, PICKED.to + 1));
    if (picked !== null) return picked;
  }
  return await tryPort(host, 0);
}

async function tryPort(host: string, port: number): Promise<number | null> {
  const server = createServer().listen({ host, port });
  try {
    await once(server, 'listening');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EADDRINUSE') return null;
    throw error;
  }
  const address = server.address() as AddressInfo; // a TCP server that listens has such an address
  server.close();
  await once(server, 'close');
  return address.port;
}
