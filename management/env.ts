import { Resolver } from 'node:dns';
import { join } from 'node:path';
import { z } from 'zod';
import { removedSettings } from '../base/removed-settings.ts';
import { edgePublicUrl } from '../sites/manifest/description.ts';
import { hostname, imageReference } from '../sites/manifest/schema.ts';
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

/** Three operators, so that none of them decides alone: Cloudflare, Google, Quad9. */
const PUBLIC_RESOLVERS = ['1.1.1.1', '8.8.8.8', '9.9.9.9'];

function areServers(servers: readonly string[]): boolean {
  try {
    new Resolver().setServers(servers);
    return true;
  } catch {
    return false;
  }
}

/** What these claims name isn't one person for ever: an address is given to another, or set by its user. */
const REUSED_CLAIMS: ReadonlySet<string> = new Set([
  'email',
  'name',
  'preferred_username',
  'unique_name',
  'upn',
]);

/** How many days history is kept; 0: for ever. */
const days = z.coerce
  .number()
  .int()
  .refine((value) => value === 0 || (value >= 30 && value <= 36_500), 'must be 0 (for ever) or 30 to 36500');

/** `https`, or `http` on loopback: else a cookie or a code could be read on its way. */
const loginUrl = z.url().refine((text) => isProtected(new URL(text)), 'must be https, or http on loopback');

function isProtected({ protocol, hostname: host }: URL): boolean {
  const isLoopback = host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
  return protocol === 'https:' || (protocol === 'http:' && isLoopback);
}

/** An origin as a browser sends it: no path, no default port. */
const origin = z.string().refine((text) => URL.canParse(text) && new URL(text).origin === text, {
  message: 'must be an origin like https://dashboard.example.net',
});

/** Accounts for which the console's login page has a button each, as JSON. */
const loginHints = z
  .string()
  .default('[]')
  .transform((text, context) => {
    try {
      return JSON.parse(text) as unknown;
    } catch {
      context.addIssue({ code: 'custom', message: 'must be JSON' });
      return z.NEVER;
    }
  })
  .pipe(
    z
      .array(z.strictObject({ hint: z.string().min(1).max(255), name: z.string(), description: z.string() }))
      .max(20),
  );

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
  /** A file of git's settings. Git reads none of the machine's or the user's. */
  SITES_REPO_GIT_CONFIG: z.string().optional(),
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
  AUTH_SUBJECT_CLAIM: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be the name of a claim')
    .refine(
      (name) => !REUSED_CLAIMS.has(name),
      'must not be a claim that providers reuse or people can change: use sub or oid',
    )
    .default('sub'),
  SUPER_ADMINS: list,
  /** Unset: people can't log in here. */
  OIDC_CLIENT_ID: z.string().optional(),
  OIDC_CLIENT_SECRET: z.string().optional(),
  /** Unset: AUTH_ISSUER. */
  OIDC_ISSUER: z.string().optional(),
  OIDC_LOGIN_HINTS: loginHints,
  PUBLIC_URL: loginUrl.transform((text) => text.replace(/\/+$/, '')).optional(),
  SESSION_IDLE_MINUTES: z.coerce.number().int().min(5).max(43_200).default(480),
  SESSION_HOURS: z.coerce.number().int().min(1).max(720).default(24),
  /** The mail server. Unset: no mail is sent. */
  SMTP_URL: z
    .url({ protocol: /^smtps?$/, message: 'must be smtp://[user:password@]host[:port], or smtps://…' })
    .optional(),
  MAIL_FROM: z
    .string()
    .regex(/^(?:[^<>\r\n]{0,100} )?<?[^\s<>@]+@[^\s<>@]+>?$/, 'must be an address, or a name and <address>')
    .optional(),
  DASHBOARD_ORIGINS: list.pipe(z.array(origin)),
  /** Requests a minute. */
  RATE_LIMIT_PER_ADDRESS: z.coerce.number().int().min(1).default(3_000),
  RATE_LIMIT_PER_SUBJECT: z.coerce.number().int().min(1).default(1_200),
  /** The most event streams that one subject may have open in one process. */
  STREAMS_PER_SUBJECT: z.coerce.number().int().min(1).default(100),
  CONTAINERS_PER_CLIENT: z.coerce.number().int().min(0).default(0),
  MEMBERS_PER_CLIENT: z.coerce.number().int().min(1).max(1_000).default(1_000),
  TOKENS_PER_CLIENT: z.coerce.number().int().min(0).default(100),
  CLIENTS_PER_ORGANISATION: z.coerce.number().int().min(1).default(1_000),
  CLIENTS_PER_PERSON: z.coerce.number().int().min(1).default(1_000),
  /** `true`: tenants may name loopback addresses, for example of webhooks. Only for a machine of one person. */
  ALLOW_LOOPBACK_TARGETS: z.stringbool({ truthy: ['true'], falsy: ['false'] }).default(false),
  MANAGEMENT_TRUSTED_PROXIES: list.pipe(z.array(trustedProxy)),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without spaces')
    .optional(),
  /** The secret that the edge sends to `/ingest`. Unset: requests can't be followed live. */
  INGEST_SECRET: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without spaces')
    .optional(),
  /** Unset: a folder under STATE_DIR. */
  SEARCH_CACHE_DIR: z.string().optional(),
  SEARCH_CACHE_DAYS: z.coerce.number().int().min(2).max(400).default(7),
  /** The key of forwarders' tokens. Unset: no domain can get a same-origin path. */
  FORWARDER_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{32,256}$/, 'must be 32 to 256 printable characters without spaces')
    .optional(),
  /** The bucket of the raw logs, by its S3 interface, or by Cloudflare's API. Neither: traffic isn't collected. */
  RAW_LOGS_BUCKET: z.string().default('tagyard-raw-logs'),
  RAW_LOGS_S3_URL: z.url().optional(),
  RAW_LOGS_S3_ACCESS_KEY: z.string().optional(),
  RAW_LOGS_S3_SECRET_KEY: z.string().optional(),
  RAW_LOGS_API_URL: z.url().optional(),
  RAW_LOGS_API_TOKEN: z.string().optional(),
  /** Unset: the only account that the token can read. */
  RAW_LOGS_ACCOUNT_ID: z.string().optional(),
  /** Calls per second. */
  RAW_LOGS_API_RATE: z.coerce.number().positive().default(3.5),
  RAW_LOGS_POLL_SECONDS: z.coerce.number().min(0.1).max(60).default(10),
  RAW_LOGS_LATE_DAYS: z.coerce.number().int().min(1).max(30).default(7),
  /** 0: for ever. */
  KEEP_TRAFFIC_MINUTES_HOURS: z.coerce.number().int().min(0).max(8_760).default(48),
  KEEP_TRAFFIC_HOURS_DAYS: z.coerce.number().int().min(0).max(36_500).default(90),
  KEEP_TRAFFIC_DAYS_DAYS: z.coerce.number().int().min(0).max(36_500).default(0),
  /** If a container's sums of a day exceed these, its usage has a warning; 0: never. */
  USAGE_REQUESTS_PER_DAY: z.coerce.number().int().min(0).default(0),
  USAGE_EVENTS_PER_DAY: z.coerce.number().int().min(0).default(0),
  KEEP_AUDIT_DAYS: days.default(730),
  KEEP_EVENTS_DAYS: days.default(180),
  KEEP_OPERATIONS_DAYS: days.default(180),
  AGE_RECIPIENT: z.string().regex(/^age1[a-z0-9]+$/, 'must be an age recipient (age1…)'),
  EDGE_DOMAIN: hostname,
  ORIGIN_DOMAIN: hostname,
  /** `required`: new sites get `consent: required` and `consentMode: basic`. */
  DEFAULT_CONSENT: z.enum(['opt_out', 'required']).default('opt_out'),
  PLATFORM_DOMAINS: list.pipe(z.array(hostname)),
  /** `off`: for installations with one tenant. Every domain counts as its client's. */
  DOMAIN_PROOF: z.enum(['dns', 'off']).default('dns'),
  /** The resolvers of DOMAIN_PROOF and of the states of custom domains, each asked separately. */
  PROOF_RESOLVERS: list
    .transform((servers) => (servers.length === 0 ? PUBLIC_RESOLVERS : servers))
    .refine(
      areServers,
      'must be addresses, with a port where it isn’t 53: 192.0.2.1, 192.0.2.1:5353, [2001:db8::1]:5353',
    ),
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
  const issues = result.error?.issues ?? [];
  const faults = [
    ...removedSettings(variables),
    ...issues.map(({ path, message }) => `${path.join('.')}: ${message}`),
  ];
  if (!result.success || faults.length > 0) throw new EnvironmentError(faults.join('; '));
  const { data: env } = result;
  demandLogin(env);
  demandBucket(env);
  if (env.SMTP_URL !== undefined && env.MAIL_FROM === undefined) {
    throw new EnvironmentError('MAIL_FROM: set it beside SMTP_URL, to the sender of mails');
  }
  const { PGLITE_DIR, IMAGE_REPOSITORIES: repositories, TAG_SERVER_IMAGE: image } = env;
  return {
    ...env,
    OIDC_ISSUER: env.OIDC_ISSUER ?? env.AUTH_ISSUER,
    SEARCH_CACHE_DIR: env.SEARCH_CACHE_DIR ?? join(env.STATE_DIR, 'search'),
    PGLITE_DIR: PGLITE_DIR ?? join(env.STATE_DIR, 'pglite'),
    IMAGE_REPOSITORIES: repositories.length > 0 ? repositories : [repositoryOf(image)],
  };
}

/** Throws if a URL of the raw logs' bucket is set, but its credentials are missing. */
function demandBucket(env: z.output<typeof environment>): void {
  const needed = {
    RAW_LOGS_S3_URL: ['RAW_LOGS_S3_ACCESS_KEY', 'RAW_LOGS_S3_SECRET_KEY'],
    RAW_LOGS_API_URL: ['RAW_LOGS_API_TOKEN'],
  } as const;
  for (const url of ['RAW_LOGS_S3_URL', 'RAW_LOGS_API_URL'] as const) {
    if (env[url] === undefined) continue;
    for (const name of needed[url]) {
      if (env[name] === undefined) throw new EnvironmentError(`${name}: set it beside ${url}`);
    }
  }
}

/** Throws if people are to log in here, but a setting for that is missing or invalid. */
function demandLogin(env: z.output<typeof environment>): void {
  if (env.OIDC_CLIENT_ID === undefined) return;
  if (env.PUBLIC_URL === undefined) {
    throw new EnvironmentError(
      'PUBLIC_URL: set it beside OIDC_CLIENT_ID, to the URL at which browsers reach this API',
    );
  }
  const name = env.OIDC_ISSUER === undefined ? 'AUTH_ISSUER' : 'OIDC_ISSUER';
  const issuer = loginUrl.safeParse(env.OIDC_ISSUER ?? env.AUTH_ISSUER);
  if (!issuer.success) throw new EnvironmentError(`${name}: ${issuer.error.issues[0]?.message}`);
  // Two providers may give one `sub` to two persons, and a `sub` alone says who the caller is.
  if (env.OIDC_ISSUER === undefined || env.OIDC_ISSUER === env.AUTH_ISSUER) return;
  throw new EnvironmentError(
    `OIDC_ISSUER: is ${env.OIDC_ISSUER}, but AUTH_ISSUER is ${env.AUTH_ISSUER}; people and tokens must be of one provider: unset OIDC_ISSUER, or set AUTH_ISSUER, AUTH_JWKS_URL and AUTH_AUDIENCE to those of its provider`,
  );
}

export type Environment = ReturnType<typeof readEnvironment>;
