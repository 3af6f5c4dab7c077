import * as z from 'zod/mini';

/**
 * The request to the verification worker and its answer. Management and `tagyard doctor` send the request; the
 * provisioner makes the host's part of it. All of them parse with these schemas.
 */

/** Every check with its meaning, in the order of a report. */
export const CHECKS = {
  host_report: 'the host of the site reports what only it can observe',
  container_config: 'the container configuration decodes, and a server runs with it',
  edge_routes:
    'no other Workers route, no custom domain of another worker and no tag gateway takes requests before the worker',
  processing_health: 'the processing server is healthy through the edge',
  preview_health: 'the preview server is healthy on its own hostname',
  preview_url: 'PREVIEW_SERVER_URL is https, and the processing server reaches the preview server by it',
  single_preview: 'exactly one preview server runs, because it keeps its sessions in memory',
  path_prefix: 'the tag server forwards no path of the site to its preview server',
  underscore_paths: '/_/* reaches the tag server',
  query_forwarded: 'the query string reaches the tag server',
  cookies_forwarded: 'cookies reach the tag server',
  loader: 'the loader answers on each host and names that host as its edge',
  boot: 'the bootstrap knows each domain',
  script: 'the web tag’s script answers for each domain',
  cors_allowed: 'pages of each domain may send requests across origins',
  cors_refused: 'pages of other origins may not',
  dns: 'each name resolves to the right address',
  certificate: 'each certificate is for its name and valid for 14 more days, or a quarter of its life',
  client_address: 'the visitor’s true address arrives, not a claimed one',
  cookie_lifetime: 'how long Safari keeps the cookies of each domain, and what their restoration depends on',
  consent: 'where visitors are identified before they choose',
  block_lists: 'which addresses the common blocking lists match',
  same_origin:
    'each domain’s own server forwards its prefix with cookies and the visitor’s address and country, uncached',
  csp: 'the content security policy of each domain’s first page allows its tags',
} as const;
export type CheckName = keyof typeof CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as [CheckName, ...CheckName[]]; // Object.keys forgets the key type

/** A site as seen from outside. URLs have no path; the tokens are the ones that pages contain. */
const siteDescription = z.object({
  siteId: z.string(),
  edge: z.url(),
  origin: z.url(),
  preview: z.url(),
  customDomains: z.array(z.url()),
  loaderToken: z.string(),
  domains: z.array(
    z.object({
      domain: z.string(),
      token: z.string(),
      webTagId: z.string(),
      active: z.boolean(),
      /** The path that the domain's own server forwards to the edge; unset: none. */
      sameOrigin: z.optional(z.string()),
    }),
  ),
  /** Paths forwarded to the tag server in addition to the built-in ones. */
  proxyPaths: z.array(z.string()),
  /** Where visitors are identified before they choose: `everywhere but in DE`; `null`: nowhere; unset: an older host. */
  identifies: z.optional(z.nullable(z.string())),
  /** The key of a visitor's restored cookies: the site's own cookie, or the visitor's id; unset: none are restored. */
  restoresBy: z.optional(z.literal(['master_cookie', 'id'])),
  /** The name of the site's own cookie; unset: none, or an older host. */
  masterCookie: z.optional(z.string()),
});
export type SiteDescription = z.infer<typeof siteDescription>;

/** `page`: a domain whose pages contain the loader. It resolves to the client's own server. */
const NAME_KINDS = ['edge', 'origin', 'preview', 'custom', 'page'] as const;

const nameAnswer = z.object({
  name: z.string(),
  kind: z.enum(NAME_KINDS),
  /** IPv4 and IPv6 addresses, from the host's resolver. */
  addresses: z.array(z.string()),
  /** The last name of the CNAME chain; `null` without a CNAME. */
  alias: z.nullable(z.string()),
  /** Registrable parts by the public suffix list, of the name and of its last alias. */
  registrable: z.nullable(z.string()),
  aliasRegistrable: z.nullable(z.string()),
  /** The addresses that the name may resolve to; empty: any address is right. */
  expected: z.array(z.string()),
  /** Why the name does not resolve. */
  problem: z.nullable(z.string()),
});
export type NameAnswer = z.infer<typeof nameAnswer>;

const certificate = z.object({
  name: z.string(),
  /** ISO 8601; `null` where the server presented no certificate. */
  validTo: z.nullable(z.string()),
  /** Unset: an older host. */
  validFrom: z.optional(z.string()),
  /** Whether the certificate is for this name. */
  covers: z.boolean(),
  problem: z.nullable(z.string()),
});

const arrival = z.object({
  /** The host that was visited. */
  name: z.string(),
  /** The visitor's own addresses: the socket's, and the public one. */
  from: z.array(z.string()),
  /** The address that the tag server would get. */
  as: z.nullable(z.string()),
  problem: z.nullable(z.string()),
});

/** What only the host can observe. */
export const hostReport = z.object({
  host: z.string(),
  /** The site as it runs on the host. */
  site: siteDescription,
  /** `problem: null`: the configuration decodes. Never contains the auth token. */
  config: z.object({ id: z.nullable(z.string()), problem: z.nullable(z.string()) }),
  previews: z.object({ count: z.nullable(z.number()), problem: z.nullable(z.string()) }),
  /** Whether the processing servers reach the preview server from their own network; unset: an older host. */
  previewPath: z.optional(z.object({ problem: z.nullable(z.string()), fix: z.nullable(z.string()) })),
  /** What takes requests before they reach the worker; unset: an older host, or Cloudflare's API didn't answer. */
  edgePath: z.optional(
    z.object({
      problem: z.nullable(z.string()),
      fix: z.nullable(z.string()),
      /** What could not be read; unset: an older host. */
      unread: z.optional(z.nullable(z.string())),
    }),
  ),
  names: z.array(nameAnswer),
  certificates: z.array(certificate),
  /** How the names on this host get certificates; unset: an older host. */
  certificateFix: z.optional(z.string()),
  arrivals: z.array(arrival),
});
export type HostReport = z.infer<typeof hostReport>;

export const verificationRequest = z.object({
  site: siteDescription,
  /** `null`: there is no host report, for the reason in `hostProblem`. */
  host: z.nullable(hostReport),
  hostProblem: z.nullable(z.string()),
  /** How long the verification may take, in milliseconds. */
  budget: z.number().check(z.minimum(500), z.maximum(10_000)),
});
export type VerificationRequest = z.infer<typeof verificationRequest>;

export const check = z.object({
  name: z.enum(CHECK_NAMES),
  /** The checked host or domain; `null`: the site. */
  subject: z.nullable(z.string()),
  status: z.enum(['passed', 'failed', 'skipped']),
  detail: z.string(),
  /** What to do; `null`: nothing. */
  fix: z.nullable(z.string()),
});
export type Check = z.infer<typeof check>;

/** `unreachable`: no hostname of the site answered with a status below 500. */
export const VERDICTS = ['passed', 'failed', 'unreachable'] as const;

export const verificationReport = z.object({
  status: z.enum(VERDICTS),
  checkedAt: z.iso.datetime(),
  checks: z.array(check),
});
export type VerificationReport = z.infer<typeof verificationReport>;
