import { PRODUCTS } from '../../sites/requests/products.ts';
import { akamaiSnippet } from './akamai.ts';
import { apacheSnippet } from './apache.ts';
import { caddySnippet } from './caddy.ts';
import { cloudflareWorkerSnippet } from './cloudflare-worker.ts';
import { cloudfrontSnippet } from './cloudfront.ts';
import { fastlySnippet } from './fastly.ts';
import { type Forwarder, type ForwarderInput, parseForwarder } from './forwarder.ts';
import { haproxySnippet } from './haproxy.ts';
import { netlifySnippet } from './netlify.ts';
import { nextjsSnippet } from './nextjs.ts';
import { nginxSnippet } from './nginx.ts';
import { vercelSnippet } from './vercel.ts';

type Product = (typeof PRODUCTS)[number];

const GENERATORS = {
  nginx: nginxSnippet,
  apache: apacheSnippet,
  caddy: caddySnippet,
  haproxy: haproxySnippet,
  cloudflareWorker: cloudflareWorkerSnippet,
  fastly: fastlySnippet,
  cloudfront: cloudfrontSnippet,
  akamai: akamaiSnippet,
  vercel: vercelSnippet,
  netlify: netlifySnippet,
  nextjs: nextjsSnippet,
} as const satisfies Record<Product, (forwarder: Forwarder) => string>;

/** The configuration of a domain's own server for each product. Throws if a value can't be quoted. */
export function renderSnippets(input: ForwarderInput): Record<Product, string> {
  const forwarder = parseForwarder(input);
  const rendered = PRODUCTS.map((product) => [product, GENERATORS[product](forwarder)] as const);
  return Object.fromEntries(rendered) as Record<Product, string>; // it has every product
}
