import { randomBytes } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { CATALOGUE, findProduct } from './catalogue.ts';
import { expireAll, isEdgeBlocked } from './cookies.ts';
import { contentSecurityPolicy, withNonce, withoutEdge } from './policy.ts';
import { type PageModel, readPageFile, renderPage } from './templates.ts';

/** The demo site as the shop needs it: the API's snippet for the shop's domain, and the edge. */
export interface ShopSite {
  readonly snippet: string;
  /** The base URL of the site's edge hostname, for example `http://demo.tagyard.localhost:8787`. */
  readonly edgeUrl: string;
  /** The vendor's base URL: where the snippet's fallback loads from. */
  readonly vendorUrl?: string | undefined;
  /** The site's page in the console. */
  readonly consoleUrl?: string | undefined;
}

const ASSETS = [
  ['shop.css', 'text/css'],
  ['drawing.css', 'text/css'],
  ['panel.css', 'text/css'],
  ['head.js', 'text/javascript'],
  ['panel.js', 'text/javascript'],
] as const;

interface ShopDeps {
  /** Called for every page. If it throws, the page works without its tags and shows the error. */
  site(): Promise<ShopSite> | ShopSite;
}

/**
 * A small shop whose pages carry the snippet and show its effects in the browser. It has two kinds of page (`/` and
 * `/products/<slug>`) and its own style and script. Only the snippet loads anything from other servers.
 */
export function buildShop(deps: ShopDeps): FastifyInstance {
  const app = fastify();
  const title = 'Saltmarsh, tableware from the estuary';
  app.get('/', async (request, reply) => page(request, reply, { title }));
  app.get<{ Params: { slug: string } }>('/products/:slug', async (request, reply) => {
    const product = findProduct(request.params.slug);
    return product === undefined
      ? notFound(request, reply)
      : page(request, reply, { title: product.name, product });
  });
  for (const [file, type] of ASSETS) {
    const content = readPageFile(file);
    app.get(`/${file}`, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(content));
  }
  app.delete('/cookies', async (request, reply) => {
    reply.code(204).header('set-cookie', expireAll(request.headers.cookie, request.hostname));
  });
  app.post('/bot-visits', async ({ host }) => {
    const { site, problem } = await readSite(deps);
    if (site === null) return { error: problem };
    // Imported, with its HTTP client, only when a visit is requested.
    const { visitAsBot } = await import('./bot-visit.ts');
    return await visitAsBot(site, `http://${host}`).catch((error: unknown) => ({ error: reasonOf(error) }));
  });
  app.setNotFoundHandler(notFound);

  function notFound(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    return page(request, reply.code(404), { title: 'Not found', isMissing: true });
  }

  /** Answers the page with the status that `reply` has. */
  async function page(
    request: FastifyRequest,
    reply: FastifyReply,
    content: Pick<PageModel, 'title' | 'product' | 'isMissing'>,
  ): Promise<FastifyReply> {
    const nonce = randomBytes(16).toString('base64url');
    const { site, problem } = await readSite(deps);
    const edgeUrl = site?.edgeUrl ?? null;
    const snippet = site === null ? '' : withNonce(site.snippet, nonce);
    const isBlocked = isEdgeBlocked(request.headers.cookie);
    const policies = [
      contentSecurityPolicy(nonce, edgeUrl),
      ...(isBlocked ? [withoutEdge(site?.vendorUrl)] : []),
    ];
    return reply
      .type('text/html; charset=utf-8')
      .headers({
        'content-security-policy': policies.join(', '),
        'cache-control': 'no-store',
        'referrer-policy': 'strict-origin-when-cross-origin',
        'x-content-type-options': 'nosniff',
      })
      .send(
        renderPage({
          ...content,
          nonce,
          edgeUrl,
          snippet,
          problem,
          isBlocked,
          consoleUrl: site?.consoleUrl,
          products: CATALOGUE,
        }),
      );
  }

  return app;
}

/** The site, or the error for the panel: a shop without tags still works. */
async function readSite(deps: ShopDeps): Promise<{ site: ShopSite | null; problem: string | null }> {
  try {
    return { site: await deps.site(), problem: null };
  } catch (error) {
    return { site: null, problem: reasonOf(error) };
  }
}

const reasonOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
