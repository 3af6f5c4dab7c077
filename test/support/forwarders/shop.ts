import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { renderSnippets } from '../../../management/snippets/index.ts';
import { forwarderToken, forwarderTokenHash } from '../../../management/view/forwarder-token.ts';
import type { SnippetOptions } from '../../../plugins/custom_loader/snippet.ts';
import { FORWARDED_COOKIES } from '../../../plugins/document.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import type { BrowserSite, BrowserStage } from '../browser/stage.ts';
import { manifestInput } from '../manifest.ts';
import { type ForwarderKind, startForwarder, startPages } from './forwarder.ts';

const PATH = '/m3trics1';

/** A request that arrived at the tag server. */
interface Arrived {
  readonly path: string;
  readonly headers: Readonly<Record<string, string | undefined>>;
}

/** A shop whose own server forwards `/m3trics1` to the edge, with its page at `/`. */
export interface ForwardedShop {
  readonly site: BrowserSite;
  readonly host: string;
  /** The port of the shop's server on 127.0.0.1. */
  readonly port: number;
  readonly path: string;
  /** Replaces the page's HTML before the snippet, and the extra response headers of the page. */
  show(head: string, headers?: Readonly<Record<string, string>>): void;
  /** What arrived at the tag server at this path from this shop’s pages. */
  arrived(path: string): Promise<readonly Arrived[]>;
  /** What arrived at the tag server with this request header, at any path and from any host. */
  arrivedWith(name: string, value: string): Promise<readonly Arrived[]>;
  close(): Promise<void>;
}

/** An arrived request, as the tag server records it. */
interface Recorded {
  readonly path: string;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

const headersOf = ({ headers }: Recorded): Arrived['headers'] =>
  Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));

interface ShopOptions {
  /** The page's HTML before the snippet. */
  readonly page?: string;
  /** The nonce of the page's inline scripts. */
  readonly nonce?: string;
  readonly manifest?: Partial<ManifestInput>;
  readonly snippet?: Partial<SnippetOptions>;
  /**
   * A place to write into nginx's snippet, which by itself sends empty country and region headers. It represents the
   * operator's own geo database, with the same answer for every visitor.
   */
  readonly place?: { readonly country: string; readonly region: string };
}

let shops = 0;

export async function startForwardedShop(
  stage: BrowserStage,
  kind: ForwarderKind,
  { page = '', nonce, manifest = {}, snippet: ofPage = {}, place }: ShopOptions = {},
): Promise<ForwardedShop> {
  shops += 1;
  const domain = `${kind.toLowerCase()}${shops}.example`;
  const [entry] = manifestInput(`forwarded${shops}`).domains;
  if (entry === undefined) throw new Error('the manifest has no domain');
  const of = { container: 'any', domain, generation: 1 };
  const token = forwarderToken('forwarder-key-of-the-tests-0123456789', of);
  const forwarder = { generation: 1, tokenHash: forwarderTokenHash(token) };
  const site = await stage.site({
    // Each shop has its own web tag id, so that no two shops use the same cached copy of gtm.js.
    domains: [{ ...entry, domain, webTagId: `GTM-FORWARD${shops}`, sameOrigin: { path: PATH, forwarder } }],
    customDomains: [`metrics.${domain}`],
    ...manifest,
  });
  const directory = await mkdtemp(join(tmpdir(), 'tagyard-forwarded-'));
  const host = `www.${domain}`;
  const edgeHost = site.manifest.hostnames.edge;
  const tags = site.snippet({ edgeUrl: PATH, ...ofPage });
  const withNonce = (html: string) =>
    nonce === undefined ? html : html.replaceAll('<script>', `<script nonce="${nonce}">`);
  let head = page;
  let headers: Readonly<Record<string, string>> = {};
  const pages = await startPages(
    () => withNonce(`<title>Shop</title>${head}${tags}`),
    () => headers,
  );
  const edge = `https://${edgeHost}:${stage.port}`;
  const { masterCookie = [] } = site.manifest.modules.cookie_restoration ?? {};
  const cookies = [...FORWARDED_COOKIES, masterCookie].flat();
  const snippet = renderSnippets({ edge, path: PATH, domain, token, cookies })
    [kind].replace('x-tagyard-country ""', `x-tagyard-country "${place?.country ?? ''}"`)
    .replace('x-tagyard-region ""', `x-tagyard-region "${place?.region ?? ''}"`);
  const { ca } = stage;
  const server = await startForwarder(kind, { directory, host, edgeHost, snippet, ca, pages: pages.port });
  async function events(): Promise<Arrived[]> {
    const response = await fetch(`${stage.tagServerUrl}/tagyard-demo/events`);
    const answer = (await response.json()) as { events: Recorded[] }; // its documented shape
    return answer.events.map((event) => ({ path: event.path, headers: headersOf(event) }));
  }
  return {
    site,
    host,
    port: server.port,
    path: PATH,
    show(next, sent = {}) {
      head = next;
      headers = sent;
    },
    async arrived(path) {
      return (await events())
        .filter((event) => event.path === path)
        .filter(({ headers }) => headers['x-forwarded-host']?.split(':')[0] === host);
    },
    async arrivedWith(name, value) {
      return (await events()).filter(({ headers }) => headers[name] === value);
    },
    async close() {
      await server.stop();
      await pages.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
