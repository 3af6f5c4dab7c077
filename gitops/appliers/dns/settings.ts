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

/** DNS's part of the environment; `.env.example` explains each variable. */
export const dnsSettings = z.object({
  DNS_PROVIDER: z.enum(['cloudflare', 'rfc2136']).default('cloudflare'),
  DNS_RECORD_MODE: z.enum(['auto', 'site', 'wildcard']).default('auto'),
  /** The zone that Tagyard writes to; unset: EDGE_DOMAIN. */
  DNS_ZONE: optionalText,
  /** Unset: the quota that Cloudflare states for the zone, or else that of the zone’s plan. */
  DNS_RECORD_QUOTA: optionalText.pipe(quotaSetting.optional()),
  DNS_SERVER: dnsServer,
  DNS_TSIG_NAME: optionalText.pipe(
    z
      .string()
      .regex(/^[\w.-]+$/)
      .optional(),
  ),
  DNS_TSIG_ALGORITHM: z
    .enum(['hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512'])
    .default('hmac-sha256'),
  DNS_TSIG_SECRET_FILE: optionalText,
  EDGE_TARGET: optionalText.pipe(
    z
      .union([z.ipv4(), z.ipv6(), z.string().regex(/^(?:\{host\}|[a-z0-9-]+)(?:\.[a-z0-9-]+)+\.?$/i)])
      .optional(),
  ),
});
