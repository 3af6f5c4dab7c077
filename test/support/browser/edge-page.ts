import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Received, Reply } from '../../../edge/kit/upstream.ts';
import { renderSnippet } from '../../../plugins/custom_loader/snippet.ts';
import { type SiteOptions, type Stage, type StagedSite, startStage } from '../edge/stage.ts';

/** A site's page with the snippet, and the edge in workerd that the snippet names. */
export interface EdgePage {
  readonly stage: Stage;
  readonly site: StagedSite;
  /** URLs of the page, of one that has it in a frame, and of one with the snippet twice. */
  readonly url: { readonly page: string; readonly framed: string; readonly twice: string };
  /** The edge's name and the address to which the browser must resolve it; see `launchChromium`. */
  readonly hosts: Readonly<Record<string, string>>;
  /** The number of requests for the vendor's script, the snippet's fallback. */
  readonly direct: () => number;
  /** What the page has before the snippet. */
  head: string;
  /** The vendor's answer to the edge and to the browser. */
  vendor: (request: Pick<Received, 'url'>) => Reply;
  close(): Promise<void>;
}

/** A web tag that registers its container and counts its runs. */
export function webTag({ url }: Pick<Received, 'url'>): Reply {
  const id = JSON.stringify(new URL(url).searchParams.get('id'));
  return {
    headers: { 'content-type': 'application/javascript', 'access-control-allow-origin': '*' },
    body: `(window.google_tag_manager=window.google_tag_manager||{})[${id}]={};window.ran=(window.ran||0)+1`,
  };
}

export async function startEdgePage(options: SiteOptions = {}): Promise<EdgePage> {
  const stage = await startStage();
  // Chromium treats *.localhost as trustworthy, so that Secure cookies and the cookie store work without TLS.
  const site = await stage.site({ domains: [{ domain: 'shop.localhost', cookieDomain: null }], ...options });
  let asked = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://shop.localhost');
    if (url.pathname === '/gtm.js') {
      asked += 1;
      const { status = 200, headers, body } = world.vendor({ url: url.href });
      response.writeHead(status, headers).end(body);
      return;
    }
    const content = pages[url.pathname];
    response
      .writeHead(content === undefined ? 404 : 200, { 'content-type': 'text/html' })
      .end(`<!doctype html><title>Shop</title>${world.head}${content ?? ''}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
  const base = `http://shop.localhost:${port}`;
  const snippet = renderSnippet({
    edgeUrl: `http://${site.host}:${stage.port}`,
    loaderToken: site.loader,
    webTagId: site.domains[0]?.webTagId ?? '',
    vendorUrl: base,
  });
  const loader = `<script async src="http://${site.host}:${stage.port}/l/${site.loader}.js"></script>`;
  const pages: Record<string, string> = {
    '/': snippet,
    '/framed': '<iframe sandbox="allow-scripts" src="/"></iframe>',
    '/twice': `${snippet}${snippet}${loader}`,
  };
  const world: EdgePage = {
    stage,
    site,
    url: { page: `${base}/`, framed: `${base}/framed`, twice: `${base}/twice` },
    hosts: { [site.host]: '127.0.0.1' },
    direct: () => asked,
    head: '',
    vendor: webTag,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await stage.close();
    },
  };
  stage.upstream.reply = (request) => (request.url.includes('vendor.test') ? world.vendor(request) : {});
  return world;
}
