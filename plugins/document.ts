import * as z from 'zod/mini';
import { config as adblockItpDetection, BAIT_PATH, DETECTION_PATH } from './adblock_itp_detection/config.ts';
import { config as cookieRestoration } from './cookie_restoration/config.ts';
import { BOOT_PATH, customLoaderConfig, LOADER_PATH } from './custom_loader/config.ts';
import { isActiveDomain, config as multiDomain } from './multi_domain/config.ts';
import { serverProxyConfig, TAG_SERVER_PATHS, VENDOR_SCRIPT_PATH } from './server_proxy/config.ts';

/**
 * The documents that gitops writes to Workers KV and the edge reads. Both sides parse with these schemas, so that each
 * accepts what the other writes. Each schema refuses other versions than its own.
 */

/** The path table: the paths of all plugins' routes. A manifest can't forward them to the tag server. */
export const ROUTE_PATHS: readonly string[] = /* @__PURE__ */ [
  TAG_SERVER_PATHS,
  VENDOR_SCRIPT_PATH,
  LOADER_PATH,
  BOOT_PATH,
  DETECTION_PATH,
  BAIT_PATH,
].flat();

/** The options of each plugin, by its name. The worker uses none of them: the marks keep them out of its bundle. */
export const MODULES = {
  server_proxy: /* @__PURE__ */ serverProxyConfig(ROUTE_PATHS),
  custom_loader: /* @__PURE__ */ customLoaderConfig(),
  adblock_itp_detection: adblockItpDetection,
  cookie_restoration: cookieRestoration,
  multi_domain: multiDomain,
} as const;

/** The flags of the optional plugins. Mandatory plugins have none. */
export const FEATURE_FLAGS = ['cookie_restoration', 'multi_domain'] as const;

/** The plugins that no option disables: without them a site has no tags. A test compares this with the plugins. */
export const ALWAYS_ON = ['server_proxy', 'custom_loader'] as const;

/** `opt_out`: act unless the visitor denies. `required`: identify, store and restore nothing before a grant. */
export const CONSENT_MODES = ['opt_out', 'required'] as const;
export type ConsentMode = (typeof CONSENT_MODES)[number];

/**
 * `EDGE_CONFIG`, by container id. Unknown flags and modules are accepted: a worker one release behind must not lose a
 * site's whole configuration because of a new flag. Each plugin parses its own options. (`catchall` instead of `record`
 * and `literal` instead of `enum` keep the worker's bundle small.)
 */
export const edgeConfigDocument = z.object({
  version: z.literal(2),
  module: z.literal('tagyard'),
  features: z.catchall(z.object({}), z.boolean()),
  modules: z.catchall(z.object({}), z.looseObject({})),
  consent: z.literal(CONSENT_MODES),
});
export type EdgeConfigDocument = z.infer<typeof edgeConfigDocument>;

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
});

/** One of a site's domains. `cookieDomain` is its registrable part; `null`: only host-only cookies can be set. */
const registryDomain = z.object({
  domain: z.string(),
  webTagId: z.string(),
  token: z.string(),
  cookieDomain: z.nullable(z.string()),
  active: z.boolean(),
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
  /** As in EDGE_CONFIG, in case that can't be read: the consent mode must not depend on one store. */
  consent: z.literal(CONSENT_MODES),
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
