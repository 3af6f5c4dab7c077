import { z } from 'zod';
import { optionalText, portNumber, textList } from '../../../base/env-values.ts';
import { cidrRange } from './policy.ts';

/** The proxy's part of the environment; `.env.example` explains each variable. */
export const proxySettings = z.object({
  PROXY_DRIVER: z.enum(['nginx', 'embedded']).default('nginx'),
  NGINX_BIN: z.string().default('nginx'),
  NGINX_SYSTEM_CONFIG: optionalText,
  PROXY_LISTEN: textList.default(['0.0.0.0']),
  PROXY_HTTP_PORT: portNumber.default(80),
  PROXY_TLS_PORT: portNumber.default(443),
  TRUSTED_PROXIES: textList.pipe(z.array(cidrRange)).default([]),
  NAME_REQUESTS_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(500),
  NAME_CONNECTIONS: z.coerce.number().int().min(1).max(65_535).default(500),
  GEOIP_DATABASE: optionalText,
  SITE_LOG_MEGABYTES: z.coerce.number().min(1).max(1_000_000).default(30),
  /** The edge, for custom domains: scheme and address. */
  EDGE_UPSTREAM: z.url(),
});
