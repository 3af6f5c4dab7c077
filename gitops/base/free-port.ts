import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * Binds a TCP port of `host` (0: any free one), closes it again and returns it; `null` if it is in use. Rejects with the
 * system's error if it can't be bound for another reason (`EACCES`, `EADDRNOTAVAIL`).
 */
export async function freePort(host: string, port: number): Promise<number | null> {
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
