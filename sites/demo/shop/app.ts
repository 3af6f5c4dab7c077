import { randomBytes } from 'node:crypto';
import fastify, { type FastifyInstance, type FastifyReply } from 'fastify';
import { CATALOGUE, findProduct } from './catalogue.ts';
import { contentSecurityPolicy, withNonce } from './policy.ts';
import { type PageModel, readPageFile, renderPage } from './templates.ts';

/** What the API answered for the shop's domain, as a person would paste it, and where the site's edge answers. */
export interface ShopSite {
  readonly snippet: string;
  /** Base URL of the site's edge hostname, `http://demo.tagyard.localhost:8787` say. */
  readonly edgeUrl: string;
}

const ASSETS = [
  ['shop.css', 'text/css'],
  ['drawing.css', 'text/css'],
  ['panel.css', 'text/css'],
  ['panel.js', 'text/javascript'],
] as const;

export interface ShopDeps {
  /** Asked at every page. It may throw: the page works without its tags, and says why it has none. */
  site(): Promise<ShopSite> | ShopSite;
}

/**
 * A small shop that carries the snippet and shows, from the browser's own view, what came of it. Two kinds of page
 * (`/`, `/products/<slug>`), its own style and script, nothing from elsewhere but what the snippet loads.
 */
export function buildShop(deps: ShopDeps): FastifyInstance {
  const app = fastify();
  app.get('/', (_request, reply) => page(reply, 200, { title: 'Saltmarsh, tableware from the estuary' }));
  app.get<{ Params: { slug: string } }>('/products/:slug', (request, reply) => {
    const product = findProduct(request.params.slug);
    return product === undefined ? lost(reply) : page(reply, 200, { title: product.name, product });
  });
  for (const [file, type] of ASSETS) {
    const content = readPageFile(file);
    app.get(`/${file}`, (_request, reply) => reply.type(`${type}; charset=utf-8`).send(content));
  }
  app.setNotFoundHandler((_request, reply) => lost(reply));

  function lost(reply: FastifyReply): Promise<FastifyReply> {
    return page(reply, 404, { title: 'Nothing here', lost: true });
  }

  async function page(
    reply: FastifyReply,
    status: number,
    content: Pick<PageModel, 'title' | 'product' | 'lost'>,
  ): Promise<FastifyReply> {
    const nonce = randomBytes(16).toString('base64url');
    const { site, trouble } = await ask(deps);
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
      .send(renderPage({ ...content, nonce, edgeUrl, snippet, trouble, products: CATALOGUE }));
  }

  return app;
}

/** A shop sells without its tags: a site that can't be had leaves a note for the panel, not an error page. */
async function ask(deps: ShopDeps): Promise<{ site: ShopSite | null; trouble: string | null }> {
  try {
    return { site: await deps.site(), trouble: null };
  } catch (error) {
    return { site: null, trouble: error instanceof Error ? error.message : String(error) };
  }
}
