import { z } from 'zod';
import { TARGETS } from './appliers/contract.ts';
import { cidrRange } from './appliers/proxy/policy.ts';
import { edgePublicUrl } from './manifest/description.ts';
import { DRIFT_MODES } from './pass/drift.ts';
import { POLICIES } from './pass/guards.ts';

const optional = z
  .string()
  .transform((text) => (text === '' ? undefined : text))
  .optional();
const port = z.coerce.number().int().min(0).max(65535);
/** `host`, `host:port`, `[IPv6]` or `[IPv6]:port`; 53 where there is none. */
const dnsServer = optional.transform((text, context) => {
  if (text === undefined) return undefined;
  const url = URL.parse(`dns://${text}`);
  if (url === null || url.hostname === '' || url.pathname !== '') {
    context.addIssue({ code: 'custom', message: 'must be <host> or <host>:<port>' });
    return z.NEVER;
  }
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(url.port) || 53 };
});
const list = z.string().transform((text) =>
  text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);

/** `dns=warn,kv=ignore` */
const driftModes = list
  .transform((pairs) => Object.fromEntries(pairs.map((pair) => pair.split('='))))
  .pipe(z.partialRecord(z.enum(TARGETS), z.enum(DRIFT_MODES)));

/** The provisioner's environment; `.env.example` says what each one means. */
const envSchema = z.object({
  TAGYARD_INSTANCE: z
    .string()
    .regex(/^[a-z0-9-]{1,12}$/)
    .default('tagyard'),
  HOST_NAME: z.string().default('tag-1'),
  SITES_REPO: z.string(),
  SITES_BRANCH: z.string().default('main'),
  SITES_POLL_SECONDS: z.coerce.number().positive().default(30),
  STATE_DIR: z.string(),
  INFRA_SECRET: optional,
  INFRA_SECRET_PREVIOUS: optional,
  HOP_SECRET: z.string().regex(/^[A-Za-z0-9_-]{16,256}$/, 'must be 16 to 256 of A-Z, a-z, 0-9, _ and -'),
  PROVISIONER_ADDRESS: z.string().default('127.0.0.1'),
  PROVISIONER_PORT: port.default(8081),
  AGE_IDENTITY_FILE: z.string(),
  DRAIN_SECONDS: z.coerce.number().min(0).default(300),
  RECONCILE_INTERVAL_SECONDS: z.coerce.number().positive().default(300),
  RECONCILE_POLICY: z.enum(POLICIES).default('sync'),
  DRIFT_MODES: driftModes.default({}),
  CLOUDFLARE_API_URL: z.url().default('https://api.cloudflare.com/client/v4'),
  CLOUDFLARE_API_TOKEN: z.string(),
  CLOUDFLARE_ACCOUNT_ID: z.string(),
  CLOUDFLARE_ZONE_ID: z.string(),
  EDGE_DOMAIN: z.string(),
  DNS_PROVIDER: z.enum(['cloudflare', 'rfc2136']).default('cloudflare'),
  /** The zone that is written; unset: EDGE_DOMAIN. */
  DNS_ZONE: optional,
  DNS_SERVER: dnsServer,
  DNS_TSIG_NAME: optional.pipe(
    z
      .string()
      .regex(/^[\w.-]+$/)
      .optional(),
  ),
  DNS_TSIG_ALGORITHM: z
    .enum(['hmac-sha224', 'hmac-sha256', 'hmac-sha384', 'hmac-sha512'])
    .default('hmac-sha256'),
  DNS_TSIG_SECRET_FILE: optional,
  EDGE_TARGET: optional.pipe(
    z
      .union([z.ipv4(), z.ipv6(), z.string().regex(/^(?:\{host\}|[a-z0-9-]+)(?:\.[a-z0-9-]+)+\.?$/i)])
      .optional(),
  ),
  CLOUDFLARE_RATE: z.coerce.number().positive().default(3.5),
  EDGE_SCRIPT_NAME: z.string().default('tagyard-edge'),
  EDGE_ROUTE_MODE: z.enum(['site', 'wildcard']).default('site'),
  HOST_ADDRESS: z.ipv4(),
  EDGE_PUBLIC_URL: optional.pipe(edgePublicUrl),
  /** `<address>` or `<address>:<port>`; none: the system's. */
  DNS_RESOLVERS: list.default([]),
  PROXY_DRIVER: z.enum(['nginx', 'embedded']).default('nginx'),
  NGINX_BIN: z.string().default('nginx'),
  NGINX_SYSTEM_CONFIG: optional,
  PROXY_LISTEN: list.default(['0.0.0.0']),
  PROXY_HTTP_PORT: port.default(80),
  PROXY_TLS_PORT: port.default(443),
  TRUSTED_PROXIES: list.pipe(z.array(cidrRange)).default([]),
  NAME_REQUESTS_PER_SECOND: z.coerce.number().int().min(1).max(1_000_000).default(500),
  NAME_CONNECTIONS: z.coerce.number().int().min(1).max(65_535).default(500),
  /** Where the worker answers for custom domains: scheme and address. */
  EDGE_UPSTREAM: z.url(),
  TLS_DIR: optional,
  ACME_DIRECTORY_URL: optional.pipe(z.url({ protocol: /^https$/ }).optional()),
  ACME_EMAIL: optional.pipe(z.email().optional()),
  ACME_CA_FILE: optional,
  ACME_ORDERS_PER_HOUR: z.coerce.number().positive().default(60),
  /** Besides HOST_ADDRESS. */
  ACME_ADDRESSES: list.default([]).pipe(z.array(z.union([z.ipv4(), z.ipv6()]))),
  LOCAL_CA_DIR: optional,
  CONTAINERS_DRIVER: z.enum(['docker', 'process']).default('docker'),
  CONTAINER_CA_FILE: optional,
  SWAP_STEADY_SECONDS: z.coerce.number().min(0).default(5),
  SWAP_DRAIN_SECONDS: z.coerce.number().min(0).default(30),
  PREVIEW_IDLE_SECONDS: z.coerce.number().positive().default(900),
  RECYCLE_DAYS: z.coerce.number().min(0).max(11).default(10),
  TAG_SERVER_ENTRY: z.string().default('sites/demo/tag-server/main.ts'),
  LOOPBACK_SUBNET: z
    .string()
    .regex(/^127\.\d{1,3}$/)
    .default('127.77'),
  LOG_LEVEL: z.string().default('info'),
});
export type Env = z.infer<typeof envSchema>;

/** Throws an `Error` of one line that names every variable at fault and what it must be. */
export function readEnv(source: NodeJS.ProcessEnv): Env {
  const result = envSchema.safeParse(source);
  if (result.success) return result.data;
  const faults = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
  throw new Error(`the environment is incomplete: ${faults.join('; ')}`);
}
