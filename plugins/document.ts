import * as z from 'zod/mini';
import { config as adblockItpDetection, BAIT_PATH, DETECTION_PATH } from './adblock_itp_detection/config.ts';
import { config as anonymizer } from './anonymizer/config.ts';
import { config as blockAddresses } from './block_addresses/config.ts';
import { config as botGuard } from './bot_guard/config.ts';
import { config as consentGate } from './consent_gate/config.ts';
import { config as cookieRestoration } from './cookie_restoration/config.ts';
import { BOOT_PATH, customLoaderConfig, LOADER_PATH } from './custom_loader/config.ts';
import { config as geoHeaders } from './geo_headers/config.ts';
import { config as googleTagGateway } from './google_tag_gateway/config.ts';
import { isActiveDomain, config as multiDomain } from './multi_domain/config.ts';
import { HIT_PATHS, serverProxyConfig, TAG_SERVER_PATHS, VENDOR_SCRIPT_PATH } from './server_proxy/config.ts';
import { config as userAgentHeaders } from './user_agent_headers/config.ts';
import { config as userId } from './user_id/config.ts';

/**
 * The documents that gitops writes to Workers KV and the edge reads. Both sides use these schemas, so that the edge
 * accepts what gitops writes. Each schema refuses other versions than its own.
 */

/** The path table: the paths of all plugins' routes. A manifest's own paths can't be among them. */
export const ROUTE_PATHS: readonly string[] = /* @__PURE__ */ [
  TAG_SERVER_PATHS,
  VENDOR_SCRIPT_PATH,
  LOADER_PATH,
  BOOT_PATH,
  DETECTION_PATH,
  BAIT_PATH,
].flat();

/**
 * The cookies that a tag server gets: those of the edge and of the tag server, and the ids that usual tags read. A site's
 * plugins can add others. All the rest, such as a shop's session or another vendor's trackers, are for others; below a
 * prefix the edge gets none of them. An entry is a name, or a prefix of names if it ends with `*`.
 */
export const FORWARDED_COOKIES: readonly string[] = [
  '_fpid',
  // Google: the tag server's own, its debug sessions, analytics and ads.
  ...['FPID', 'FPLC', 'FPAU', 'FPGCL*', 'FPGSID', 'gtm_auth', 'gtm_debug', 'gtm_preview'],
  ...['_ga', '_ga_*', '_gcl_*', '_gac_*', '_dcid'],
  // Meta, TikTok, Snapchat, LinkedIn, Microsoft, Pinterest, Klaviyo.
  ...['_fbp', '_fbc', '_ttp', 'ttclid', '_scid', 'li_fat_id', '_uetsid', '_uetvid', '_uetmsclkid'],
  ...['_epik', '_pin_unauth', '__kla_id'],
];

/** The routes of hits, in the records of requests. */
export const HIT_ROUTES = HIT_PATHS;

/** The options of each plugin, by its name. The worker doesn't use this: `@__PURE__` keeps it out of the bundle. */
export const MODULES = {
  server_proxy: /* @__PURE__ */ serverProxyConfig(ROUTE_PATHS),
  custom_loader: /* @__PURE__ */ customLoaderConfig(),
  adblock_itp_detection: adblockItpDetection,
  cookie_restoration: cookieRestoration,
  multi_domain: multiDomain,
  geo_headers: geoHeaders,
  user_agent_headers: userAgentHeaders,
  bot_guard: botGuard,
  user_id: userId,
  anonymizer: anonymizer,
  consent_gate: consentGate,
  block_addresses: blockAddresses,
  google_tag_gateway: googleTagGateway,
} as const;

/** The flags of the optional plugins. Mandatory plugins have none. */
export const FEATURE_FLAGS = [
  'cookie_restoration',
  'multi_domain',
  'geo_headers',
  'user_agent_headers',
  'bot_guard',
  'user_id',
  'anonymizer',
  'consent_gate',
  'block_addresses',
  'google_tag_gateway',
] as const;

/** The plugins that no option disables: without them a site has no tags. A test compares this with the plugins. */
export const ALWAYS_ON = ['server_proxy', 'custom_loader'] as const;

/** The plugins that fail closed: their options must be known without EDGE_CONFIG. A test compares this with the plugins. */
export const FAIL_CLOSED = ['consent_gate', 'anonymizer'] as const;

/** `opt_out`: act unless the visitor denies. `required`: identify, store and restore nothing before a grant. */
export const CONSENT_MODES = ['opt_out', 'required'] as const;
export type ConsentMode = (typeof CONSENT_MODES)[number];

/** `basic`: no tag loads before a grant. `advanced`: the web tag's script loads, and its tags follow Consent Mode. */
export const LOADING_MODES = ['basic', 'advanced'] as const;
/** `vendor`: if the edge fails, pages load the vendor's script directly. `none`: they don't. */
export const FALLBACKS = ['vendor', 'none'] as const;

/** The rules of consent for some places: a country (`DE`) or a part of one (`US-CA`), by ISO 3166. */
const region = z.object({
  places: z.array(z.string()),
  consent: z.optional(z.literal(CONSENT_MODES)),
  consentMode: z.optional(z.literal(LOADING_MODES)),
  fallback: z.optional(z.literal(FALLBACKS)),
});

/** The rules of consent of a site. What is missing has its default: `advanced`, `vendor`, no region, 395 days. */
const consentSettings = {
  consent: z.literal(CONSENT_MODES),
  consentMode: z.optional(z.literal(LOADING_MODES)),
  fallback: z.optional(z.literal(FALLBACKS)),
  regions: z.optional(z.array(region)),
  consentMaxDays: z.optional(z.number()),
};
const consentDocument = z.object(consentSettings);
export type ConsentSettings = z.infer<typeof consentDocument>;

/**
 * `EDGE_CONFIG`, by container id. Unknown flags and modules are accepted: a worker one release behind must not lose a
 * site's whole configuration because of a new flag. Each plugin parses its own options. (`catchall` instead of `record`
 * and `literal` instead of `enum` keep the worker's bundle small.)
 */
const gateSettings = {
  features: z.catchall(z.object({}), z.boolean()),
  modules: z.catchall(z.object({}), z.looseObject({})),
};
export const edgeConfigDocument = z.object({
  version: z.literal(2),
  module: z.literal('tagyard'),
  ...gateSettings,
  ...consentSettings,
});
export type EdgeConfigDocument = z.infer<typeof edgeConfigDocument>;

type Gate = Pick<EdgeConfigDocument, 'features' | 'modules'>;

/** What a site's registry has of plugins that fail closed; nothing if none is on. */
export function closedGate({ features, modules }: Gate): { closed?: Gate } {
  const names = FAIL_CLOSED.filter((name) => features[name]);
  if (names.length === 0) return {};
  return {
    closed: {
      features: Object.fromEntries(names.map((name) => [name, true])),
      modules: Object.fromEntries(names.map((name) => [name, { ...modules[name] }])),
    },
  };
}

/** `ROUTES`, by edge hostname (lower case, no port). `origin` is an https origin such as `https://shop-origin.example.net`. */
export const routingDocument = z.object({
  version: z.literal(1),
  siteId: z.string(),
  containerId: z.string(),
  origin: z.string(),
});
export type RoutingDocument = z.infer<typeof routingDocument>;

/**
 * A domain's own server forwards requests under `path` (`/m3trics1`) to the edge. `tokens` are the SHA-256 hashes (hex) of
 * the tokens by which the edge knows it. `until` is the ISO time (exclusive) at which a rotated token expires.
 */
const sameOrigin = z.object({
  path: z.string(),
  tokens: z.array(z.object({ hash: z.string(), until: z.optional(z.string()) })),
  /** The site's loader token, for requests whose URL doesn't contain it. */
  loader: z.optional(z.string()),
});

/** One of a site's domains. `cookieDomain` is its registrable part; `null`: only host-only cookies can be set. */
const registryDomain = z.object({
  domain: z.string(),
  webTagId: z.string(),
  token: z.string(),
  cookieDomain: z.nullable(z.string()),
  active: z.boolean(),
  /** Set if the domain isn't proven to be the client's: then only the edge hostname serves it. */
  unproven: z.optional(z.literal(true)),
  sameOrigin: z.optional(sameOrigin),
});
export type RegistryDomain = z.infer<typeof registryDomain>;

/** The domains of a site's list that the edge may serve. */
export const servedDomains = <T>(domains: readonly T[], multiDomain: boolean): readonly T[] =>
  domains.filter((_domain, index) => isActiveDomain(index, multiDomain));

/** `SITE_REGISTRY`, by container id. The first domain is the primary one. */
export const registryDocument = z.object({
  version: z.literal(1),
  siteId: z.string(),
  containerId: z.string(),
  domains: z.array(registryDomain),
  proxyPaths: z.array(z.string()),
  /** Set if the edge must answer nothing of the site. */
  off: z.optional(z.literal(true)),
  /** The site's data layer names. EDGE_CONFIG has them too, like the rules of consent. */
  dataLayers: z.optional(z.array(z.string())),
  /** The features and options of EDGE_CONFIG of those `FAIL_CLOSED` plugins that are on: they run without it, too. */
  closed: z.optional(z.object(gateSettings)),
  /** The same as in EDGE_CONFIG: the rules of consent must also be known while EDGE_CONFIG can't be read. */
  ...consentSettings,
});
export type RegistryDocument = z.infer<typeof registryDocument>;

/** `LOADER_TOKEN_MAP`, by loader token. `until` is the ISO date (UTC, exclusive) at which a rotated token expires. */
export const loaderTokenDocument = z.object({
  version: z.literal(1),
  containerId: z.string(),
  until: z.optional(z.string()),
});
export type LoaderTokenDocument = z.infer<typeof loaderTokenDocument>;

/** The KV namespaces that gitops writes, by binding name. */
export const KV_NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG'] as const;
export type KvNamespace = (typeof KV_NAMESPACES)[number];
