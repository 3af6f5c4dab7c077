import { WorkerEntrypoint } from 'cloudflare:workers';
import { matchRoute } from './route-patterns.ts';

interface FrontEnv {
  readonly EDGE: Fetcher;
}

/** Routes live in the isolate: the embedded runtime has exactly one, and its owner sets them anew at every start. */
let routes: readonly string[] = [];

/**
 * What Cloudflare does before a worker runs, for the embedded edge: picks requests by Workers routes and states the
 * visitor's address. The socket listens on loopback only, and the runtime doesn't tell a worker which loopback
 * address a peer has, so that address is always 127.0.0.1; a client's own claims are dropped.
 */
export default class Front extends WorkerEntrypoint<FrontEnv> {
  override async fetch(request: Request): Promise<Response> {
    if (!matchRoute(routes, new URL(request.url))) return notRouted();
    const headers = new Headers(request.headers);
    headers.set('cf-connecting-ip', '127.0.0.1');
    headers.delete('mf-cf-blob');
    // `cf` is stated anew because the runtime takes it from a header that a client can send.
    return this.env.EDGE.fetch(new Request(request, { headers, redirect: 'manual', cf: { colo: 'LOCAL' } }));
  }

  /** Called by the host over the runtime's own RPC, out of a client's reach. */
  setRoutes(patterns: readonly string[]): void {
    routes = [...patterns];
  }
}

/** As Cloudflare answers for a name that it proxies without a worker or an origin behind it. */
function notRouted(): Response {
  return new Response('error code: 1016\n', {
    status: 530,
    headers: { 'content-type': 'text/plain; charset=UTF-8', server: 'tagyard-embedded-edge' },
  });
}
