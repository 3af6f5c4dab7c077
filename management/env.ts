import { join } from 'node:path';
import { z } from 'zod';
import { edgePublicUrl } from '../gitops/manifest/description.ts';
import { hostname, imageReference } from '../gitops/manifest/schema.ts';
import { repositoryOf } from './containers/image.ts';
import { portRange } from './ports/pool-range.ts';

const list = z
  .string()
  .default('')
  .transform((text) =>
    text
      .split(',')
      .map((item) => item.trim())
      .filter((item) => item !== ''),
  );

/** An address, a range of addresses, or one of Fastify's names for ranges. */
const trustedProxy = z.union(
  [z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6(), z.enum(['loopback', 'linklocal', 'uniquelocal'])],
  'must be an address, a range like 10.0.0.0/8, or loopback, linklocal or uniquelocal',
);

/** How many days history is kept; 0: for ever. */
const days = z.coerce
  .number()
  .int()
  .refine((value) => value === 0 || (value >= 30 && value <= 36_500), 'must be 0 (for ever) or 30 to 36500');

/** The environment of the management process. An empty variable counts as unset. */
const environment = z.object({
  MANAGEMENT_ADDRESS: z.string().default('127.0.0.1'),
  MANAGEMENT_PORT: z.coerce.number().int().min(0).max(65535).default(8080),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  /** URL of PostgreSQL. Unset: an embedded database under PGLITE_DIR. */
  DATABASE_URL: z.string().optional(),
  /** Privileged connection for migrations and the port pool. Unset: DATABASE_URL is used. */
  PORT_POOL_DATABASE_URL: z.string().optional(),
  PGLITE_DIR: z.string().optional(),
  STATE_DIR: z.string().default('.tagyard/management'),
  SITES_REPO: z.string(),
  SITES_BRANCH: z.string().default('main'),
  SITES_POLL_SECONDS: z.coerce.number().positive().default(30),
  INFRA_PROVISIONER_URL: z.url(),
  INFRA_SECRET: z.string(),
  /** Set both or neither. Without them, containers can't be verified. */
  VERIFICATION_WORKER_URL: z.url().optional(),
  VERIFICATION_SECRET: z.string().optional(),
  PORT_POOL: portRange.prefault('20000-20999'),
  AUTH_JWKS_URL: z.url(),
  AUTH_ISSUER: z.string(),
  AUTH_AUDIENCE: z.string(),
  SUPER_ADMINS: list,
  /** Requests a minute. */
  RATE_LIMIT_PER_ADDRESS: z.coerce.number().int().min(1).default(3_000),
  RATE_LIMIT_PER_SUBJECT: z.coerce.number().int().min(1).default(1_200),
  /** The most event streams that one subject may have open in one process. */
  STREAMS_PER_SUBJECT: z.coerce.number().int().min(1).default(100),
  MANAGEMENT_TRUSTED_PROXIES: list.pipe(z.array(trustedProxy)),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without spaces')
    .optional(),
  /** The key of forwarders' tokens. Unset: no domain can get a same-origin path. */
  FORWARDER_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{32,256}$/, 'must be 32 to 256 printable characters without spaces')
    .optional(),
  KEEP_AUDIT_DAYS: days.default(730),
  KEEP_EVENTS_DAYS: days.default(180),
  KEEP_OPERATIONS_DAYS: days.default(180),
  AGE_RECIPIENT: z.string().regex(/^age1[a-z0-9]+$/, 'must be an age recipient (age1…)'),
  EDGE_DOMAIN: hostname,
  ORIGIN_DOMAIN: hostname,
  /** `required`: new sites get `consent: required` and `consentMode: basic`. */
  DEFAULT_CONSENT: z.enum(['opt_out', 'required']).default('opt_out'),
  PLATFORM_DOMAINS: list.pipe(z.array(hostname)),
  EDGE_PUBLIC_URL: edgePublicUrl,
  CUSTOM_PUBLIC_URL: edgePublicUrl,
  TAG_UPSTREAM: z.url().default('https://www.googletagmanager.com'),
  HOST_NAME: z.string().default('tag-1'),
  TAG_SERVER_IMAGE: imageReference,
  /** Unset: the repository of TAG_SERVER_IMAGE. */
  IMAGE_REPOSITORIES: list,
});

/** The settings are invalid. The message names each invalid variable. */
class EnvironmentError extends Error {
  override name = 'EnvironmentError';
}

export function readEnvironment(variables: NodeJS.ProcessEnv) {
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''));
  const result = environment.safeParse(given);
  if (!result.success) {
    const faults = result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
    throw new EnvironmentError(faults.join('; '));
  }
  const { data: env } = result;
  const { PGLITE_DIR, IMAGE_REPOSITORIES: repositories, TAG_SERVER_IMAGE: image } = env;
  return {
    ...env,
    PGLITE_DIR: PGLITE_DIR ?? join(env.STATE_DIR, 'pglite'),
    IMAGE_REPOSITORIES: repositories.length > 0 ? repositories : [repositoryOf(image)],
  };
}

export type Environment = ReturnType<typeof readEnvironment>;
