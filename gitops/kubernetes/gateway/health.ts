import { once } from 'node:events';
import { createServer, type Server } from 'node:http';

interface HealthDeps {
  /** Why the gateway can't take requests; empty: it can. */
  readonly obstacles: () => Promise<readonly string[]>;
  /** True once the gateway ends on purpose, with time for requests in flight. */
  readonly isEnding: () => boolean;
}

/**
 * Answers the kubelet's probes: `/ready` with 200, or with 503 and what is missing, one reason a line; `/alive` with
 * 200. `/serving` is for load balancers that end the connections to a lost gateway. It answers like `/ready`, but with
 * 404 while the gateway ends: then haproxy keeps its open connections (`http-check disable-on-404`). Resolves when the
 * server listens.
 */
export async function serveHealth(
  { address, port }: { address: string; port: number },
  { obstacles, isEnding }: HealthDeps,
): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${text}\n`);
    };
    if (request.url === '/alive') return answer(200, 'alive');
    if (request.url !== '/ready' && request.url !== '/serving') {
      return answer(404, 'unknown path: use /ready, /serving or /alive');
    }
    if (isEnding()) return answer(request.url === '/serving' ? 404 : 503, 'the gateway ends');
    obstacles().then(
      (found) => (found.length === 0 ? answer(200, 'ready') : answer(503, found.join('\n'))),
      (error: Error) => answer(503, error.message),
    );
  });
  server.listen(port, address);
  await once(server, 'listening');
  return server;
}
