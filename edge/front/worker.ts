import { WorkerEntrypoint } from 'cloudflare:workers';
import { leadsToWorker } from './route-patterns.ts';

interface FrontEnv {
  readonly EDGE: Fetcher;
}

/**
 * Marks a request that has passed here (on Cloudflare: counts the passes). A request that returns is refused: it is a
 * worker's own fetch. On Cloudflare, such a fetch bypasses its zone's routes and reaches the origin; here, there is no
 * origin (docs/facts.md, Cloudflare Workers).
 */
const VIA = 'cf-ew-via';

/** Kept in memory: the embedded runtime has one isolate, and the process that starts it sets the routes each time. */
let routes: readonly string[] = [];
let elsewhere: readonly string[] = [];

/**
 * Does for the embedded edge what Cloudflare does before a worker runs: selects requests by Workers routes and sets the
 * visitor's address. The socket listens on loopback only, and the runtime hides which loopback address a peer has, so
 * the address is always 127.0.0.1. Headers by which a client claims another one are overwritten or dropped.
 */
export default class Front extends WorkerEntrypoint<FrontEnv> {
  override async fetch(request: Request): Promise<Response> {
    const url = new URL(request.url);
    if (request.headers.has(VIA) || !leadsToWorker(routes, elsewhere, url)) return notRouted();
    const headers = new Headers(request.headers);
    headers.set(VIA, '15');
    headers.set('cf-connecting-ip', '127.0.0.1');
    headers.delete('mf-cf-blob');
    // Set here because the runtime otherwise reads `cf` from a header that a client can send.
    return this.env.EDGE.fetch(new Request(request, { headers, redirect: 'manual', cf: { colo: 'LOCAL' } }));
  }

  /** `control.ts` calls this by the runtime's RPC, which no client can reach. */
  setRoutes(patterns: readonly string[], others: readonly string[]): void {
    routes = [...patterns];
    elsewhere = [...others];
  }
}

/** What Cloudflare answers for a proxied name without a worker or an origin. */
function notRouted(): Response {
  return new Response('error code: 1016\n', {
    status: 530,
    headers: { 'content-type': 'text/plain; charset=UTF-8', server: 'tagyard-embedded-edge' },
  });
}
