import { Resolver } from 'node:dns';
import { join } from 'node:path';
import { z } from 'zod';
import { personSetting } from '../base/env-values.ts';
import { parseSettings } from '../base/settings.ts';
import { edgePublicUrl } from '../sites/manifest/description.ts';
import { hostname, imageReference, tlsMode } from '../sites/manifest/schema.ts';
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
export const environment = z.object({
  MANAGEMENT_ADDRESS: z.string().default('127.0.0.1').describe('The address that management listens on.'),
  MANAGEMENT_PORT: z.coerce.number().int().min(0).max(65535).default(8080),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
  DATABASE_URL: z
    .string()
    .optional()
    .describe(
      'PostgreSQL with the role of the API, which must own nothing; it leases ports by functions of the owner. Unset: an embedded database in `pglite/` under STATE_DIR. A pooler in transaction mode (PgBouncer) delivers no notices: then event streams are up to 2 s late, and the log says so (docs/stores.md).',
    ),
  PORT_POOL_DATABASE_URL: z
    .string()
    .optional()
    .describe(
      "PostgreSQL with the role that owns the schema: it migrates, sizes the port pool, and grants the API's role what it needs. Unset: the role of DATABASE_URL does everything.",
    ),
  STATE_DIR: z.string().default('.tagyard/management'),
  SITES_REPO: z.string().describe('The sites repo: a git URL, or the path of a bare repo.'),
  SITES_REPO_GIT_CONFIG: z.string().optional(),
  SITES_REPO_PASSWORD_FILE: z.string().optional(),
  SITES_SIGNING_KEY_FILE: z.string().optional(),
  SITES_COMMITTER: personSetting.optional(),
  SITES_BRANCH: z.string().default('main'),
  SITES_POLL_SECONDS: z.coerce.number().positive().default(30),
  INFRA_PROVISIONER_URL: z.url().describe("The provisioner's URL."),
  INFRA_SECRET: z.string().describe("The provisioner's INFRA_SECRET, which management sends to it."),
  VERIFICATION_WORKER_URL: z
    .url()
    .optional()
    .describe(
      "The URL of the verification worker. Set it beside VERIFICATION_SECRET; without them nothing can be verified. The provisioner's host needs them for `tagyard doctor <site>` only.",
    ),
  VERIFICATION_SECRET: z
    .string()
    .optional()
    .describe("The secret of that worker's `x-secret` header (wrangler: a secret of that worker)."),
  PORT_POOL: portRange.prefault('20000-20999').describe("The ports of sites' containers, on loopback."),
  AUTH_JWKS_URL: z.url().describe('Bearer tokens: the signing keys.'),
  AUTH_ISSUER: z.string().describe('Bearer tokens and logins: the issuer.'),
  AUTH_AUDIENCE: z.string().describe('Bearer tokens: the audience.'),
  AUTH_SUBJECT_CLAIM: z
    .string()
    .regex(/^[\x21-\x7e]{1,128}$/, 'must be the name of a claim')
    .refine(
      (name) => !REUSED_CLAIMS.has(name),
      'must not be a claim that providers reuse or people can change: use sub or oid',
    )
    .default('sub')
    .describe(
      'The claim that says who a caller is, in bearer tokens and at logins. Entra ID: `oid`, because its `sub` differs for each application (docs/login.md). SUPER_ADMINS and members are values of this claim.',
    ),
  SUPER_ADMINS: list.describe(
    'Operators: subjects that manage all clients and organisations, read hosts, drift and all commits, plan and approve, and set images (docs/roles.md).',
  ),
  OIDC_CLIENT_ID: z
    .string()
    .optional()
    .describe(
      "Logins of people in browsers (docs/login.md): the API as a client of the OpenID provider AUTH_ISSUER. Unset: people can't log in, and callers need tokens.",
    ),
  OIDC_CLIENT_SECRET: z
    .string()
    .optional()
    .describe('The secret of that client. Unset: the client is a public one.'),
  OIDC_LOGIN_HINTS: loginHints.describe(
    'Accounts for which the console’s login page has a button each, as JSON; the provider gets `hint` as `login_hint`. For example `[{"hint":"anna","name":"Anna","description":"owner of Acme"}]`. Unset: one button without an account.',
  ),
  PUBLIC_URL: loginUrl
    .transform((text) => text.replace(/\/+$/, ''))
    .optional()
    .describe(
      'The URL at which browsers reach the API; needed beside OIDC_CLIENT_ID. For example `https://api.example.net`.',
    ),
  SESSION_IDLE_MINUTES: z.coerce
    .number()
    .int()
    .min(5)
    .max(43_200)
    .default(480)
    .describe("A session ends when it isn't used for this many minutes."),
  SESSION_HOURS: z.coerce
    .number()
    .int()
    .min(1)
    .max(720)
    .default(24)
    .describe('A session ends after this many hours in any case.'),
  SMTP_URL: z
    .url({ protocol: /^smtps?$/, message: 'must be smtp://[user:password@]host[:port], or smtps://…' })
    .optional()
    .describe(
      'The mail server that sends mails (docs/domain-proof.md): `smtp://` (port 587; with STARTTLS if the server offers it, and always if a password is sent) or `smtps://` (port 465), for example `smtp://tagyard:password@mail.example.net`. Unset: no mail is sent, and pages say so.',
    ),
  MAIL_FROM: z
    .string()
    .regex(/^(?:[^<>\r\n]{0,100} )?<?[^\s<>@]+@[^\s<>@]+>?$/, 'must be an address, or a name and <address>')
    .optional()
    .describe('The sender of mails; needed beside SMTP_URL. For example `Tagyard <tagyard@example.net>`.'),
  DASHBOARD_ORIGINS: list
    .pipe(z.array(origin))
    .describe(
      'Origins of dashboards of your own, for example `https://dashboard.example.net`. Their pages may call the API with a token, never with a session.',
    ),
  RATE_LIMIT_PER_ADDRESS: z.coerce
    .number()
    .int()
    .min(1)
    .default(3_000)
    .describe('Requests per minute of one address. Requests over the limit are answered with 429.'),
  RATE_LIMIT_PER_SUBJECT: z.coerce
    .number()
    .int()
    .min(1)
    .default(1_200)
    .describe("Requests per minute of one token's subject. Requests over the limit are answered with 429."),
  CONTAINERS_PER_CLIENT: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe('The most containers of a client, without removed and failed ones; 0: no limit.'),
  TOKENS_PER_CLIENT: z.coerce
    .number()
    .int()
    .min(0)
    .default(100)
    .describe('The most service tokens of a client or an organisation.'),
  CLIENTS_PER_ORGANISATION: z.coerce
    .number()
    .int()
    .min(1)
    .default(1_000)
    .describe("The most clients of an organisation. Archived clients don't count."),
  CLIENTS_PER_PERSON: z.coerce
    .number()
    .int()
    .min(1)
    .default(1_000)
    .describe(
      "The most clients of which one person is a member other than through an organisation. Archived clients don't count.",
    ),
  ALLOW_LOOPBACK_TARGETS: z
    .stringbool({ truthy: ['true'], falsy: ['false'] })
    .default(false)
    .describe(
      '`true`: tenants may name loopback addresses of this machine, for example for webhooks. Link-local and private addresses are refused all the same. Only where everything runs on a machine of one person.',
    ),
  MANAGEMENT_TRUSTED_PROXIES: list
    .pipe(z.array(trustedProxy))
    .describe(
      "The proxies in front of management whose x-forwarded-for is trusted: addresses, ranges, or `loopback`. Unset: no x-forwarded-for is trusted, and all callers behind a proxy appear under the proxy's address.",
    ),
  METRICS_TOKEN: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without spaces')
    .optional()
    .describe(
      "The bearer token of management's `/metrics`. Unset: `/metrics` answers only direct requests from this machine.",
    ),
  INGEST_SECRET: z
    .string()
    .regex(/^[\x21-\x7e]{16,256}$/, 'must be 16 to 256 printable characters without spaces')
    .optional()
    .describe(
      "The secret that the edge sends with the records that it posts to management's `/ingest`, 16 to 256 characters. Set the same one at the edge. Unset: there is no `/ingest`, requests can't be followed live, and a search shows them once they are in the bucket.",
    ),
  SEARCH_CACHE_DIR: z
    .string()
    .optional()
    .describe(
      'The folder where the search of requests keeps its copies of the raw logs. Each process needs a folder of its own. You can delete the folder at any time: it is made again from the bucket. Unset: a folder under STATE_DIR.',
    ),
  SEARCH_CACHE_DAYS: z.coerce
    .number()
    .int()
    .min(2)
    .max(400)
    .default(7)
    .describe('How many days of the raw logs these copies have at most.'),
  FORWARDER_KEY: z
    .string()
    .regex(/^[\x21-\x7e]{32,256}$/, 'must be 32 to 256 printable characters without spaces')
    .optional()
    .describe(
      "The key of the tokens by which the edge recognises a domain's own server (docs/same-origin.md), 32 to 256 characters, for example from `openssl rand -base64 32`. Keep it: with another key, each server needs a new token. Unset: no domain can get a same-origin path.",
    ),
  RAW_LOGS_BUCKET: z
    .string()
    .default('tagyard-raw-logs')
    .describe('The bucket of the raw logs (docs/logs.md).'),
  RAW_LOGS_S3_URL: z
    .url()
    .optional()
    .describe(
      "The bucket by its S3 interface (of R2: `https://<account>.r2.cloudflarestorage.com` and a token for that bucket). With neither this nor RAW_LOGS_API_URL, traffic isn't collected.",
    ),
  RAW_LOGS_S3_ACCESS_KEY: z.string().optional().describe('The access key of RAW_LOGS_S3_URL.'),
  RAW_LOGS_S3_SECRET_KEY: z.string().optional().describe('The secret key of RAW_LOGS_S3_URL.'),
  RAW_LOGS_API_URL: z
    .url()
    .optional()
    .describe("The bucket by Cloudflare's API, with the account's limit of calls a second."),
  RAW_LOGS_API_TOKEN: z.string().optional().describe('The token of RAW_LOGS_API_URL.'),
  RAW_LOGS_ACCOUNT_ID: z
    .string()
    .optional()
    .describe("The account of RAW_LOGS_API_URL. Unset: the token's only account."),
  RAW_LOGS_API_RATE: z.coerce
    .number()
    .positive()
    .default(3.5)
    .describe('Calls per second of RAW_LOGS_API_URL.'),
  RAW_LOGS_POLL_SECONDS: z.coerce
    .number()
    .min(0.1)
    .max(60)
    .default(10)
    .describe(
      'How often the bucket is searched for new objects (`npm start`: four times a second; with `CLOUDFLARE_EMULATOR=real` every second).',
    ),
  RAW_LOGS_LATE_DAYS: z.coerce
    .number()
    .int()
    .min(1)
    .max(30)
    .default(7)
    .describe(
      'For how many days late objects still count. A queue retries for eight hours; what is sent again from the queue `tagyard-raw-log-dead` can be days late.',
    ),
  KEEP_TRAFFIC_MINUTES_HOURS: z.coerce
    .number()
    .int()
    .min(0)
    .max(8_760)
    .default(48)
    .describe('How many hours the sums of traffic by minute are kept (docs/traffic.md). 0: for ever.'),
  KEEP_TRAFFIC_HOURS_DAYS: z.coerce
    .number()
    .int()
    .min(0)
    .max(36_500)
    .default(90)
    .describe('How many days the sums of traffic by hour are kept. 0: for ever.'),
  KEEP_TRAFFIC_DAYS_DAYS: z.coerce
    .number()
    .int()
    .min(0)
    .max(36_500)
    .default(0)
    .describe('How many days the sums of traffic by day are kept. 0: for ever.'),
  USAGE_REQUESTS_PER_DAY: z.coerce
    .number()
    .int()
    .min(0)
    .default(0)
    .describe(
      '`GET /usage` warns of a container that has more requests than this in a day. Nothing is stopped. 0: no warning.',
    ),
  USAGE_EVENTS_PER_DAY: z.coerce.number().int().min(0).default(0).describe('The same for events.'),
  KEEP_AUDIT_DAYS: days
    .default(730)
    .describe('Days after which audit rows are deleted: 30 or more, or 0 to keep them for ever.'),
  KEEP_EVENTS_DAYS: days
    .default(180)
    .describe('Days after which events are deleted: 30 or more, or 0 to keep them for ever.'),
  KEEP_OPERATIONS_DAYS: days
    .default(180)
    .describe('Days after which finished operations are deleted: 30 or more, or 0 to keep them for ever.'),
  AGE_RECIPIENT: z
    .string()
    .regex(/^age1[a-z0-9]+$/, 'must be an age recipient (age1…)')
    .describe(
      "The host's age recipient (`age1…`). CONTAINER_CONFIG is encrypted to it before it is committed.",
    ),
  EDGE_DOMAIN: hostname.describe("The zone of new sites' edge hostnames: `<site>.<EDGE_DOMAIN>`."),
  ORIGIN_DOMAIN: hostname.describe(
    "The zone of new sites' other names, as in the provisioner's settings: `<site>-origin.<ORIGIN_DOMAIN>`.",
  ),
  DEFAULT_CONSENT: z
    .enum(['opt_out', 'required'])
    .default('opt_out')
    .describe(
      "The rules of consent of new sites (docs/consent.md), for requests that don't name them. `required`: new sites get `consent: required` and `consentMode: basic`; set this where visitors may be in the EEA, the United Kingdom or Switzerland. `opt_out`: visitors are identified unless they refuse.",
    ),
  DEFAULT_TLS: tlsMode
    .optional()
    .describe(
      "Where the certificates of new sites come from, for requests that don't name `tls` (docs/tls.md). `files`: TLS_DIR of the host. `acme`: the authority of its ACME_DIRECTORY_URL. Unset: `acme` where the host reports that it has an authority, else `files`. `npm start`: `files`.",
    ),
  PLATFORM_DOMAINS: list
    .pipe(z.array(hostname))
    .describe(
      "Further domains of the operator, for example the API's domain. The API refuses clients' names that are in the registrable domain of EDGE_DOMAIN, ORIGIN_DOMAIN or one of these domains, or above one of them.",
    ),
  DOMAIN_PROOF: z
    .enum(['dns', 'off'])
    .default('dns')
    .describe(
      "`dns`: only the edge hostname serves a domain until a TXT record proves that it is the client's (docs/domain-proof.md). `off`: every domain counts as its client's; only for installations with one tenant. `npm start`: `off`.",
    ),
  PROOF_RESOLVERS: list
    .transform((servers) => (servers.length === 0 ? PUBLIC_RESOLVERS : servers))
    .refine(
      areServers,
      'must be addresses, with a port where it isn’t 53: 192.0.2.1, 192.0.2.1:5353, [2001:db8::1]:5353',
    )
    .describe(
      'The resolvers for the proofs and for the states of custom domains: addresses, with a port unless it is 53. Each is asked separately, and the answer of more than half of them counts. Unset: 1.1.1.1, 8.8.8.8 and 9.9.9.9, of three operators.',
    ),
  EDGE_PUBLIC_URL: edgePublicUrl,
  CUSTOM_PUBLIC_URL: edgePublicUrl.describe(
    'How browsers reach a custom domain. The snippet of a domain uses it if the site has a first-party custom domain there.',
  ),
  TAG_UPSTREAM: z
    .url()
    .default('https://www.googletagmanager.com')
    .describe(
      'The server of gtm.js. Management also puts it into snippets, as the fallback if the edge is down.',
    ),
  HOST_NAME: z.string().default('tag-1'),
  TAG_SERVER_IMAGE: imageReference.describe('The tag server image of new sites, pinned by digest.'),
  IMAGE_REPOSITORIES: list.describe(
    'The image repositories from which operators may set images through the API, without tag or digest. `local` allows images of the host that have only an id. Unset: the repository of TAG_SERVER_IMAGE.',
  ),
});

/** Throws as `parseSettings` does. */
export function readEnvironment(variables: NodeJS.ProcessEnv) {
  const env = parseSettings(environment, variables, faultsTogether);
  const { IMAGE_REPOSITORIES: repositories, TAG_SERVER_IMAGE: image } = env;
  return {
    ...env,
    SEARCH_CACHE_DIR: env.SEARCH_CACHE_DIR ?? join(env.STATE_DIR, 'search'),
    IMAGE_REPOSITORIES: repositories.length > 0 ? repositories : [repositoryOf(image)],
  };
}

/** Settings that others need beside them. */
const NEEDED = [
  ['RAW_LOGS_S3_URL', 'RAW_LOGS_S3_ACCESS_KEY', ''],
  ['RAW_LOGS_S3_URL', 'RAW_LOGS_S3_SECRET_KEY', ''],
  ['RAW_LOGS_API_URL', 'RAW_LOGS_API_TOKEN', ''],
  ['SMTP_URL', 'MAIL_FROM', ', to the sender of mails'],
  ['OIDC_CLIENT_ID', 'PUBLIC_URL', ', to the URL at which browsers reach this API'],
] as const;

function faultsTogether(env: z.output<typeof environment>): string[] {
  const missing = NEEDED.flatMap(([of, name, to]) =>
    env[of] !== undefined && env[name] === undefined ? [`${name}: set it beside ${of}${to}`] : [],
  );
  const issuer = env.OIDC_CLIENT_ID === undefined ? undefined : loginUrl.safeParse(env.AUTH_ISSUER);
  const issues = issuer?.error?.issues ?? [];
  return [...missing, ...issues.map(({ message }) => `AUTH_ISSUER: ${message}`)];
}

export type Environment = ReturnType<typeof readEnvironment>;
