import { once } from 'node:events';
import { createServer, type Server } from 'node:http';

/**
 * Answers the kubelet's probes: `/ready` with 200, or with 503 and what is missing, one reason a line; `/alive` with 200.
 * Resolves when it listens.
 */
export async function serveHealth(
  { address, port }: { address: string; port: number },
  obstacles: () => Promise<readonly string[]>,
): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (status: number, text: string) => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' });
      response.end(`${text}\n`);
    };
    if (request.url === '/alive') return answer(200, 'alive');
    if (request.url !== '/ready') return answer(404, 'unknown path: /ready and /alive are answered');
    obstacles().then(
      (found) => (found.length === 0 ? answer(200, 'ready') : answer(503, found.join('\n'))),
      (error: Error) => answer(503, error.message),
    );
  });
  server.listen(port, address);
  await once(server, 'listening');
  return server;
}
