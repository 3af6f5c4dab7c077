import { once } from 'node:events';
import { createServer } from 'node:http';
import type { FastifyInstance } from 'fastify';

interface OnDemandServer {
  /** Listens on a port of 127.0.0.1. Rejects if it is in use. */
  listen(port: number): Promise<void>;
  close(): Promise<void>;
}

/**
 * A server that loads its application at the first request: most instances run for hours without one, and Fastify and the
 * templates take 20 MB. If it can't be loaded, the answer is 500 with the reason, and the next request tries again.
 */
export function serveOnDemand(load: () => Promise<FastifyInstance>): OnDemandServer {
  let app: Promise<FastifyInstance> | null = null;
  const start = async () => {
    const loaded = await load();
    await loaded.ready();
    return loaded;
  };
  const server = createServer((request, response) => {
    app ??= start();
    app.then(
      ({ routing }) => routing(request, response),
      (error: unknown) => {
        app = null;
        const reason = error instanceof Error ? error.message : String(error);
        response.writeHead(500, { 'content-type': 'text/plain; charset=utf-8' }).end(`${reason}\n`);
      },
    );
  });
  return {
    async listen(port) {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
    },
    async close() {
      const closed = server.listening ? once(server, 'close') : null;
      server.close();
      server.closeAllConnections();
      await closed;
      await app?.then(
        (loaded) => loaded.close(),
        () => undefined,
      );
    },
  };
}
