import { randomBytes } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { CATALOGUE, findProduct } from './catalogue.ts';
import { contentSecurityPolicy, withNonce } from './policy.ts';
import { type PageModel, readPageFile, renderPage } from './templates.ts';

/** The demo site as the shop needs it: the API's snippet for the shop's domain, and the edge. */
export interface ShopSite {
  readonly snippet: string;
  /** The base URL of the site's edge hostname, for example `http://demo.tagyard.localhost:8787`. */
  readonly edgeUrl: string;
}

const ASSETS = [
  ['shop.css', 'text/css'],
  ['drawing.css', 'text/css'],
  ['panel.css', 'text/css'],
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
  app.get('/', (_request, reply) => page(reply, 200, { title: 'Saltmarsh, tableware from the estuary' }));
  app.get<{ Params: { slug: string } }>('/products/:slug', (request, reply) => {
    const product = findProduct(request.params.slug);
    return product === undefined ? notFound(reply) : page(reply, 200, { title: product.name, product });
  });
  for (const [file, type] of ASSETS) {
    const content = readPageFile(file);
    app.get(`/${file}`, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(content));
  }
  app.setNotFoundHandler((_request, reply) => notFound(reply));

  function notFound(reply: FastifyReply): Promise<FastifyReply> {
    return page(reply, 404, { title: 'Not found', isMissing: true });
  }

  async function page(
    reply: FastifyReply,
    status: number,
    content: Pick<PageModel, 'title' | 'product' | 'isMissing'>,
  ): Promise<FastifyReply> {
    const nonce = randomBytes(16).toString('base64url');
    const { site, problem } = await readSite(deps);
    const edgeUrl = site?.edgeUrl ?? null;
    const snippet = site === null ? '' : withNonce(site.snippet, nonce);
    return reply
      .code(status)
      .type('text/html; charset=utf-8')
      .headers({
        'content-security-policy': contentSecurityPolicy(nonce, edgeUrl),
        'cache-control': 'no-store',
        'referrer-policy': 'strict-origin-when-cross-origin',
        'x-content-type-options': 'nosniff',
      })
      .send(renderPage({ ...content, nonce, edgeUrl, snippet, problem, products: CATALOGUE }));
  }

  return app;
}

/** The site, or the error for the panel: a shop without tags still works. */
async function readSite(deps: ShopDeps): Promise<{ site: ShopSite | null; problem: string | null }> {
  try {
    return { site: await deps.site(), problem: null };
  } catch (error) {
    return { site: null, problem: error instanceof Error ? error.message : String(error) };
  }
}
