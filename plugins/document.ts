import * as z from 'zod/mini';
import { config as adblockItpDetection } from './adblock_itp_detection/config.ts';
import { config as cookieRestoration } from './cookie_restoration/config.ts';
import { config as customLoader } from './custom_loader/config.ts';
import { config as multiDomain } from './multi_domain/config.ts';
import { config as serverProxy } from './server_proxy/config.ts';

/**
 * The documents that gitops writes to Workers KV and the edge reads. Both sides parse with these schemas, so a
 * document that one accepts is one that the other understands. Each schema refuses other versions than its own.
 */

/** One line a plugin: its options, keyed by the plugin's name. */
export const MODULES = {
  server_proxy: serverProxy,
  custom_loader: customLoader,
  adblock_itp_detection: adblockItpDetection,
  cookie_restoration: cookieRestoration,
  multi_domain: multiDomain,
} as const;

export type ModuleName = keyof typeof MODULES;

/** Flags of the optional plugins; mandatory ones have none. */
export const FEATURE_FLAGS = ['cookie_restoration', 'multi_domain'] as const;
export type FeatureFlag = (typeof FEATURE_FLAGS)[number];

/** `opt_out`: act unless told not to. `required`: nothing is identified, stored or restored before a grant. */
export const CONSENT_MODES = ['opt_out', 'required'] as const;
export type ConsentMode = (typeof CONSENT_MODES)[number];

/**
 * `EDGE_CONFIG`, by container id. Flags and modules are open here on purpose: a worker one release behind must not
 * lose a whole site's configuration over a flag that it doesn't know. Each module's options are parsed by its plugin.
 * (In the worker `catchall` stands for `record`, and `literal` for `enum`: what isn't used isn't in its bundle.)
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

/** One of a site's domains. `cookieDomain` is its registrable part, `null` where only host-only cookies can be set. */
export const registryDomain = z.object({
  domain: z.string(),
  webTagId: z.string(),
  token: z.string(),
  cookieDomain: z.nullable(z.string()),
  active: z.boolean(),
});
export type RegistryDomain = z.infer<typeof registryDomain>;

/** `SITE_REGISTRY`, by container id. The first domain is the primary one. */
export const registryDocument = z.object({
  version: z.literal(1),
  siteId: z.string(),
  containerId: z.string(),
  domains: z.array(registryDomain),
  proxyPaths: z.array(z.string()),
  /** As in EDGE_CONFIG, for when that can't be read: what a person's silence means must not depend on a store. */
  consent: z.literal(CONSENT_MODES),
});
export type RegistryDocument = z.infer<typeof registryDocument>;

/** `LOADER_TOKEN_MAP`, by loader token. `until` is the ISO date (UTC, exclusive) at which a rotated token stops resolving. */
export const loaderTokenDocument = z.object({
  version: z.literal(1),
  containerId: z.string(),
  until: z.optional(z.string()),
});
export type LoaderTokenDocument = z.infer<typeof loaderTokenDocument>;

/** KV namespaces that gitops writes, by binding name. */
export const KV_NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG'] as const;
export type KvNamespace = (typeof KV_NAMESPACES)[number];
