import { z } from 'zod';
import { optionalText, quotaSetting } from '../../../base/env-values.ts';

/** `host`, `host:port`, `[IPv6]` or `[IPv6]:port`; the port defaults to 53. */
const dnsServer = optionalText.transform((text, context) => {
  if (text === undefined) return undefined;
  const url = URL.parse(`dns://${text}`);
  if (url === null || url.hostname === '' || url.pathname !== '') {
    context.addIssue({ code: 'custom', message: 'must be <host> or <host>:<port>' });
    return z.NEVER;
  }
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port) || 53 };
});

/** DNS's part of the environment. */
export const dnsSettings = z.object({
  DNS_PROVIDER: z
    .enum(['cloudflare', 'rfc2136'])
    .default('cloudflare')
    .describe(
      '`cloudflare`, or `rfc2136` (any primary with dynamic updates and zone transfers by TSIG; it needs kdig and knsupdate of knot-dnsutils). The edge itself stays at Cloudflare.',
    ),
  DNS_RECORD_MODE: z
    .enum(['auto', 'site', 'wildcard'])
    .default('auto')
    .describe(
      'A record for each name (`site`), or one for all origin and preview hostnames of this host (`wildcard`; only at Cloudflare). `auto`: an instance that has records keeps its mode; a new one gets the wildcard if no name of others is in the zone.',
    ),
  DNS_ZONE: optionalText.describe('For rfc2136: the zone that Tagyard writes to. Unset: EDGE_DOMAIN.'),
  DNS_RECORD_QUOTA: optionalText
    .pipe(quotaSetting.optional())
    .describe(
      "The zone's limit of DNS records, by which `GET /quotas`, `tagyard doctor` and the API judge. Unset: what Cloudflare states for the zone; if it states nothing, 200, 1000 or 3500 by the zone's plan.",
    ),
  DNS_SERVER: dnsServer.describe("For rfc2136: the zone's primary, `<host>` or `<host>:<port>`, TCP."),
  DNS_TSIG_NAME: optionalText
    .pipe(
      z
        .string()
        .regex(/^[\w.-]+$/)
        .optional(),
    )
    .describe('The key that may transfer and update the zone.'),
  DNS_TSIG_ALGORITHM: z
    .enum(['hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512'])
    .default('hmac-sha256')
    .describe('The algorithm of that key.'),
  DNS_TSIG_SECRET_FILE: optionalText.describe("A file with the key's secret in Base64 (mode 0600)."),
  EDGE_TARGET: optionalText
    .pipe(
      z
        .union([z.ipv4(), z.ipv6(), z.string().regex(/^(?:\{host\}|[a-z0-9-]+)(?:\.[a-z0-9-]+)+\.?$/i)])
        .optional(),
    )
    .describe(
      'The target of edge hostnames: an address, or a name in which `{host}` is replaced by the edge hostname (a partial zone at Cloudflare: `{host}.cdn.cloudflare.net`). Unset (only with `DNS_PROVIDER=cloudflare`): proxied by Cloudflare.',
    ),
});
