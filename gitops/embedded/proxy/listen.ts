import { once } from 'node:events';
import type { Server } from 'node:http';

/** Requests in flight may end; a long poll of 20 s need not. */
const DRAIN_MS = 3_000;

export interface Listening {
  close(): Promise<void>;
}

/** Throws the socket's own error (`EADDRINUSE`, say) where the address can't be had. */
export async function listenOn(server: Server, address: string, port: number): Promise<Listening> {
  server.listen({ host: address.replace(/^\[|\]$/g, ''), port });
  await once(server, 'listening');
  return {
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const patience = setTimeout(() => server.closeAllConnections(), DRAIN_MS);
      await closed;
      clearTimeout(patience);
    },
  };
}
