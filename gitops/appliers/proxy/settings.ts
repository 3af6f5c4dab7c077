import { z } from 'zod';
import { optionalText, portNumber, textList } from '../../../base/env-values.ts';
import { cidrRange } from './policy.ts';

/** The proxy's part of the environment. */
export const proxySettings = z.object({
  PROXY_DRIVER: z
    .enum(['nginx', 'embedded'])
    .default('nginx')
    .describe('The proxy: `nginx`, or `embedded` (built in).'),
  NGINX_BIN: z.string().default('nginx').describe("nginx's program."),
  NGINX_SYSTEM_CONFIG: optionalText.describe(
    "Unset: Tagyard runs its own nginx and never touches the system's. Set to the system's configuration (`/etc/nginx/nginx.conf`): the system's nginx serves the sites. It needs one line in its http block, which `tagyard doctor` names. Its operator decides what other names answer.",
  ),
  PROXY_LISTEN: textList
    .default(['0.0.0.0'])
    .describe(
      "The addresses that the proxy listens on. For previews, containers connect to the address of Docker's default bridge (172.17.0.1), which is added to the list. With NGINX_SYSTEM_CONFIG, add it yourself, because that nginx may start before Docker.",
    ),
  PROXY_HTTP_PORT: portNumber.default(80).describe("The proxy's port of HTTP."),
  PROXY_TLS_PORT: portNumber.default(443).describe("The proxy's port of TLS; `npm start`: a free one."),
  TRUSTED_PROXIES: textList
    .pipe(z.array(cidrRange))
    .default([])
    .describe(
      "The ranges of your own load balancers, which must append the visitor's address to x-forwarded-for. The address that they state is trusted, as it is from Cloudflare, whose ranges are read daily. For example `10.0.0.0/8,2001:db8::/32`.",
    ),
  NAME_REQUESTS_PER_SECOND: z.coerce
    .number()
    .int()
    .min(1)
    .max(1_000_000)
    .default(500)
    .describe(
      "nginx's limit of requests per second, with bursts of twice as many, of an origin or preview, and of each visitor's address on a custom domain; requests of the edge have no such limit. Requests over it are answered with 429.",
    ),
  NAME_CONNECTIONS: z.coerce
    .number()
    .int()
    .min(1)
    .max(65_535)
    .default(500)
    .describe(
      "nginx's limit of concurrent requests of an origin or preview, and of each visitor's address on a custom domain; requests of the edge have no such limit, but all of one name together are at most 1,024 at once, or this number if it is more. Requests over it are answered with 503.",
    ),
  GEOIP_DATABASE: optionalText.describe(
    "A MaxMind DB file (Country or City) in which nginx finds the country of visitors whose requests don't pass through Cloudflare. It needs nginx's GeoIP2 module (docs/deploy-host.md). Unset: their country is unknown.",
  ),
  SITE_LOG_MEGABYTES: z.coerce
    .number()
    .min(1)
    .max(1_000_000)
    .default(30)
    .describe(
      "The most megabytes that a site's nginx access log and its two rotated logs take together. Checked every 30 s.",
    ),
  EDGE_UPSTREAM: z
    .url()
    .describe(
      "The proxy forwards custom domains to this scheme and address of the edge, for example `https://203.0.113.10`. It can't be a name, because nginx resolves a name only once. Host and SNI are each site's edge hostname.",
    ),
});
