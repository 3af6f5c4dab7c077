import { once } from 'node:events';
import type { Server } from 'node:http';

/** Long enough for most requests in flight, but not for a long poll of 20 s. */
const DRAIN_MS = 3_000;

export interface Listening {
  close(): Promise<void>;
}

/** Throws the socket's error (for example `EADDRINUSE`) if it can't listen. */
export async function listenOn(server: Server, address: string, port: number): Promise<Listening> {
  server.listen({ host: address.replace(/^\[|\]$/g, ''), port });
  await once(server, 'listening');
  return {
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const cutOff = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
      await closed;
      clearTimeout(cutOff);
    },
  };
}
