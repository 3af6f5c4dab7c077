import * as z from 'zod/mini';

/**
 * What the verification worker is asked and what it answers. Management and `tagyard doctor` send the request, the
 * provisioner makes the host's part of it; all three parse with these schemas.
 */

/** Every check with its line of meaning, in the order in which a report lists them. */
export const CHECKS = {
  host_report: 'the host that runs the site says what only it can see',
  container_config: 'the container configuration decodes, and a server runs with it',
  processing_health: 'the processing server is healthy through the edge',
  preview_health: 'the preview server is healthy on its own hostname',
  preview_url: 'PREVIEW_SERVER_URL is https, and the processing server reaches the preview server by it',
  single_preview: 'exactly one preview server runs: its sessions are in its memory',
  path_prefix: 'no path of the site is one that the tag server would hand to its preview server',
  underscore_paths: '/_/* reaches the tag server',
  query_forwarded: 'the query string reaches the tag server',
  cookies_forwarded: 'cookies reach the tag server',
  loader: 'the loader answers on each host, and speaks of that host',
  boot: 'the bootstrap knows each domain',
  script: 'the web tag’s script answers for each domain',
  cors_allowed: 'pages of each domain may ask across origins',
  cors_refused: 'pages of any other origin may not',
  dns: 'each name resolves to where it must lead',
  certificate: 'each certificate is of its name, and valid for 14 days more',
  client_address: 'the visitor’s address arrives as it is, and a claimed one doesn’t',
  cookie_lifetime: 'how long Safari keeps the cookies of each domain',
} as const;
export type CheckName = keyof typeof CHECKS;
export const CHECK_NAMES = Object.keys(CHECKS) as [CheckName, ...CheckName[]]; // Object.keys forgets the key type

/** A site as it is asked from outside. URLs are bases without a path; tokens are those that stand in pages. */
export const siteDescription = z.object({
  siteId: z.string(),
  edge: z.url(),
  origin: z.url(),
  preview: z.url(),
  customDomains: z.array(z.url()),
  loaderToken: z.string(),
  domains: z.array(
    z.object({ domain: z.string(), token: z.string(), webTagId: z.string(), active: z.boolean() }),
  ),
  /** Paths handed to the tag server besides the built-in ones. */
  proxyPaths: z.array(z.string()),
});
export type SiteDescription = z.infer<typeof siteDescription>;

/** `page`: a domain whose pages carry the loader; it leads to the client's own server. */
export const NAME_KINDS = ['edge', 'origin', 'preview', 'custom', 'page'] as const;

const nameAnswer = z.object({
  name: z.string(),
  kind: z.enum(NAME_KINDS),
  /** IPv4 and IPv6, as the resolver of the host answers them. */
  addresses: z.array(z.string()),
  /** The last alias of the chain; `null` where there is none. */
  alias: z.nullable(z.string()),
  /** Registrable parts by the public suffix list, of the name and of its last alias. */
  registrable: z.nullable(z.string()),
  aliasRegistrable: z.nullable(z.string()),
  /** All that the name may resolve to; empty: anything that answers. */
  expected: z.array(z.string()),
  /** Why there is no answer. */
  problem: z.nullable(z.string()),
});
export type NameAnswer = z.infer<typeof nameAnswer>;

const certificate = z.object({
  name: z.string(),
  /** ISO 8601; `null` where none was shown. */
  validTo: z.nullable(z.string()),
  /** It is for this name. */
  covers: z.boolean(),
  problem: z.nullable(z.string()),
});

const arrival = z.object({
  /** The host that was visited. */
  name: z.string(),
  /** The visitor's own addresses: of the socket, and as the world sees it. */
  from: z.array(z.string()),
  /** The address that would have been told to the tag server. */
  as: z.nullable(z.string()),
  problem: z.nullable(z.string()),
});

/** What only the host sees. */
export const hostReport = z.object({
  host: z.string(),
  /** The site as the host runs it. */
  site: siteDescription,
  /** `problem: null`: it decodes. Never the auth token. */
  config: z.object({ id: z.nullable(z.string()), problem: z.nullable(z.string()) }),
  previews: z.object({ count: z.nullable(z.number()), problem: z.nullable(z.string()) }),
  names: z.array(nameAnswer),
  certificates: z.array(certificate),
  arrivals: z.array(arrival),
});
export type HostReport = z.infer<typeof hostReport>;

export const verificationRequest = z.object({
  site: siteDescription,
  /** `null`: the host couldn't be asked, for the reason in `hostProblem`. */
  host: z.nullable(hostReport),
  hostProblem: z.nullable(z.string()),
  /** Milliseconds that the answer may take. */
  budget: z.number().check(z.minimum(500), z.maximum(10_000)),
});
export type VerificationRequest = z.infer<typeof verificationRequest>;

export const check = z.object({
  name: z.enum(CHECK_NAMES),
  /** The host or domain that it is about; `null`: the site. */
  subject: z.nullable(z.string()),
  status: z.enum(['passed', 'failed', 'skipped']),
  detail: z.string(),
  /** What to do; `null`: nothing. */
  fix: z.nullable(z.string()),
});
export type Check = z.infer<typeof check>;

/** `unreachable`: nothing of the site answered at all. */
export const VERDICTS = ['passed', 'failed', 'unreachable'] as const;

export const verificationReport = z.object({
  status: z.enum(VERDICTS),
  checkedAt: z.iso.datetime(),
  checks: z.array(check),
});
export type VerificationReport = z.infer<typeof verificationReport>;
