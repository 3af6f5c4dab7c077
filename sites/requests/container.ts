import { z } from 'zod';
import { FEATURE_FLAGS } from '../../plugins/document.ts';
import { givenConsent } from '../manifest/consent.ts';
import { givenResources } from '../manifest/resources/schema.ts';
import {
  givenHost,
  givenId,
  givenName,
  givenWebTagId,
  givenDomain as host,
  modules,
  siteId,
  tlsMode,
  vhostKeys,
} from '../manifest/schema.ts';
import { ALWAYS_ON_MESSAGE, ignoredSwitches } from '../manifest/switches.ts';

/** Flags by name, as a request gives them. */
export const givenFeatures = z.partialRecord(z.enum(FEATURE_FLAGS), z.boolean());

/**
 * Keys of the manifest that clients read and set by the API, with the same names and values. `null` stands for a key
 * that the manifest doesn't have: a request clears it so, and answers show it so.
 */
export const clientKeys = {
  ...givenConsent,
  maxBodyMb: vhostKeys.maxBodyMb.unwrap().nullable().meta({
    description:
      'the longest request body that the site’s origin accepts, in MiB; a longer one is 413. It can only lower the limit, because the edge refuses bodies over 8 MiB whatever is set here; null: 8 MiB',
  }),
} as const;
const KEYS = Object.keys(clientKeys) as (keyof typeof clientKeys)[]; // Object.keys drops the key type
type ClientKeys = { readonly [Key in keyof typeof clientKeys]: z.output<(typeof clientKeys)[Key]> };

/** A request names some of them. */
export const givenClientKeys = z.object(clientKeys).partial().shape;
/** As a manifest has them. */
export type GivenClientKeys = {
  readonly [Key in keyof ClientKeys]?: NonNullable<ClientKeys[Key]> | undefined;
};

/** Those that a request or a manifest names, as a manifest has them; one that a request clears is `undefined`. */
export function clientKeysOf(
  given: { readonly [Key in keyof ClientKeys]?: ClientKeys[Key] | undefined },
): GivenClientKeys {
  const named = KEYS.filter((key) => given[key] !== undefined);
  return Object.fromEntries(named.map((key) => [key, given[key] ?? undefined]));
}

/** All of them, as answers show them. */
export function shownClientKeys(manifest: GivenClientKeys) {
  return Object.fromEntries(KEYS.map((key) => [key, manifest[key] ?? null])) as {
    readonly [Key in keyof ClientKeys]: NonNullable<ClientKeys[Key]> | null;
  };
}

export const containerConfigB64 = z
  .string()
  .min(1)
  .max(4096)
  .meta({ description: 'as Tag Manager shows it under “Manually provision tagging server”' });

/** Each domain with its web tag id. Reports a domain that is listed twice, and ids that are missing or too many. */
export function pagesOf(
  {
    domains,
    webTagIds,
  }: { readonly domains: readonly string[]; readonly webTagIds: Readonly<Record<string, string>> },
  issue: (path: PropertyKey[], message: string) => void,
): { readonly domain: string; readonly webTagId: string }[] {
  const tagIds = new Map<string, string>();
  for (const [key, id] of Object.entries(webTagIds)) {
    const domain = host.safeParse(key).data;
    if (domain === undefined || !domains.includes(domain)) {
      issue(['webTagIds', key], 'is not one of the domains');
    } else if (tagIds.has(domain)) {
      issue(['webTagIds', key], `${domain} is listed twice`);
    } else {
      tagIds.set(domain, id);
    }
  }
  return domains.map((domain, index) => {
    if (domains.indexOf(domain) !== index) issue(['domains', index], `${domain} is listed twice`);
    const id = tagIds.get(domain);
    if (id === undefined) issue(['webTagIds', domain], 'is missing: every domain needs a web tag id');
    return { domain, webTagId: id ?? '' };
  });
}

/** The pages of a new container, as a request gives them. */
export const givenPages = {
  domains: z.array(host).min(1).max(20).meta({
    description: 'the first one is the primary; the edge serves the others only while multi_domain is on',
  }),
  webTagIds: z.record(givenHost, givenWebTagId).meta({ description: 'by domain' }),
};

export const givenSiteId = siteId.optional().meta({
  description:
    'the first label of its host names, which are permanent; without it, one is made from the name, and a dry run shows it',
});

export const givenContainerResources = givenResources.optional().meta({
  description:
    'the limits of each container: memory such as `512m`, and up to one core. Only operators may give more than 2 GiB or 4 replicas',
});

/** `tls.mode` of the manifest. */
export const givenTls = tlsMode.meta({
  description:
    'where the certificates of origin, preview and custom domains come from: `files`: the host’s folder; `acme`: ordered and renewed automatically, where the host has a certificate authority',
});

/** The same in answers. */
export const shownTls = z
  .enum([...tlsMode.options, 'uploaded'])
  .meta({ description: '`uploaded`: from the pair that was uploaded, for the names that it covers' });

/** The body of `POST /server-containers`. */
export const givenContainer = z
  .strictObject({
    clientId: givenId.optional().meta({ description: 'the same as `client`', deprecated: true }),
    client: givenId.optional().meta({ description: 'required, unless `clientId` names it' }),
    name: givenName,
    siteId: givenSiteId,
    ...givenPages,
    containerConfigB64,
    features: givenFeatures.default({}),
    modules: modules,
    ...givenClientKeys,
    tls: givenTls.optional(),
    resources: givenContainerResources,
  })
  .transform((body, context) => {
    const issue = (path: PropertyKey[], message: string) =>
      context.issues.push({ code: 'custom', path, message, input: body });
    const pages = pagesOf(body, issue);
    for (const path of ignoredSwitches(body.modules)) issue(path, ALWAYS_ON_MESSAGE);
    const { domains: _, webTagIds: __, client, clientId = client, ...rest } = body;
    if (clientId === undefined) issue(['client'], 'is missing: the client that gets the container');
    else if (client !== undefined && client !== clientId) issue(['clientId'], 'differs from `client`');
    return { clientId: clientId ?? '', ...rest, pages };
  });
