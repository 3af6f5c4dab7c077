import { getDomain, getPublicSuffix, parse as parseHost } from 'tldts';
import { z } from 'zod';
import { textProblem } from '../../base/text.ts';
import { FEATURE_FLAGS, MODULES } from '../../plugins/document.ts';
import { consentKeys } from './consent.ts';
import { containerResources } from './resources/schema.ts';
import { hidingPaths, sameOrigin } from './same-origin.ts';
import { serviceAccountFacts } from './service-account.ts';

/** The newest manifest version that this release understands. Newer manifests are refused (`UnsupportedVersion`). */
export const MANIFEST_VERSION = 1;

/** Includes the private section: a shop on `shop.myshopify.com` must not get a cookie for all of `myshopify.com`. */
const PSL = { allowPrivateDomains: true } as const;

/**
 * The registrable domain of a name by the public suffix list, private section included; `null` for an IP address, a
 * single label or a public suffix. Sources: publicsuffix.org; RFC 6265bis 5.7.
 */
export function registrableDomain(host: string): string | null {
  return getDomain(host, PSL);
}

/** True where `host` is `domain` or a subdomain of it. */
export function isWithinDomain(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** Maximum length of a served name. Its mark has the prefix `_tagyard-cname.`, and a domain name has at most 253. */
const MAX_SERVED = 253 - '_tagyard-cname.'.length;
/**
 * Maximum length of a site's id and one custom domain together. File names have at most 255 bytes, and `@`, `.conf`
 * and `.tmp` are added.
 */
const MAX_FILE_STEM = 255 - '@.conf.tmp'.length;

const LABEL = /^(?!-)[a-z0-9-]{1,63}(?<!-)$/;

/**
 * Lower case, A-labels, without a trailing dot; of the URL of a page, its host. Throws where the text is neither.
 */
function normaliseHostname(text: string): string {
  const [, host = ''] = /^(?:https?:\/\/)?([^/?#]+)(?:[/?#].*)?$/i.exec(text.trim()) ?? [];
  const trimmed = host.replace(/\.$/, '');
  // A host name may not contain hidden characters, although a URL parser drops some of them.
  if (textProblem(trimmed) !== null) throw new TypeError('a host name must not contain hidden characters');
  if (!/^[^\s/?#@:\\%]+$/.test(trimmed)) throw new TypeError(`"${text}" is not a host name`);
  const url = URL.parse(`http://${trimmed}/`);
  if (url === null || url.hostname === '') throw new TypeError(`"${text}" is not a host name`);
  return url.hostname;
}

/** A canonical host name of two or more labels: lower case, A-labels, not an IP address. */
export const hostname = z
  .string()
  .max(253)
  .refine(
    (name) => {
      const labels = name.split('.');
      return (
        labels.length >= 2 &&
        labels.every((label) => LABEL.test(label)) &&
        parseHost(name).isIp !== true &&
        // A URL has other spellings of addresses: 0x7f.1 is 127.0.0.1.
        URL.parse(`http://${name}/`)?.hostname === name
      );
    },
    {
      error: 'must be a lower-case host name of two or more labels (A-labels for international names)',
      // Further messages about an invalid host name would not help.
      abort: true,
    },
  );

/** A host name that isn't a public suffix, so it can belong to one owner. */
const ownableDomain = hostname.refine(
  (name) => registrableDomain(name) !== null && getPublicSuffix(name, PSL) !== name,
  'is a public suffix; name the registrable domain under it',
);

/** A domain or the URL of a page, as people write it in a request. */
export const givenHost = z.string().min(1).max(2_000);

/** A domain as people write it in a request, converted to the form of manifests. */
export const givenDomain = givenHost
  .transform((text, context) => {
    try {
      return normaliseHostname(text);
    } catch {
      context.issues.push({ code: 'custom', message: 'is not a host name', input: text });
      return z.NEVER;
    }
  })
  .pipe(ownableDomain);

/** An id has one spelling, because texts are compared: databases take a UUID in upper case for the same one. */
export const canonicalId = z.uuid().refine((id) => id === id.toLowerCase(), 'must be in lower case');

/** An id as a request gives it. */
export const givenId = z.uuid().toLowerCase();

export const siteId = z
  .string()
  .regex(
    /^[a-z0-9](?:[a-z0-9-]{0,46}[a-z0-9])?$/,
    'must be 1 to 48 of a-z, 0-9 and -, without - at either end',
  );

/** Google's ids that people take for a web container's. */
const OTHER_IDS: readonly (readonly [prefix: RegExp, what: string])[] = [
  [/^G-/i, 'the measurement id of GA4'],
  [/^GT-/i, 'the id of a Google tag'],
  [/^AW-/i, 'the id of Google Ads'],
  [/^DC-/i, 'the id of Floodlight'],
  [/^UA-/i, 'the id of Universal Analytics'],
];

function webTagIdProblem({ input }: { readonly input?: unknown }): string | undefined {
  if (typeof input !== 'string') return undefined;
  const [, what] = OTHER_IDS.find(([prefix]) => prefix.test(input.trim())) ?? [];
  return what === undefined
    ? 'must be the id of a web container, in upper case like GTM-ABC1234'
    : `is ${what}, not of a web container; give the id of the web container that has this tag, like GTM-ABC1234 (beside its name in Tag Manager)`;
}

const WEB_TAG_ID = /^GTM-[A-Z0-9]{4,12}$/;

/** The id of a Google web container: upper case, `GTM-` and four or more characters (docs/facts.md), at most 12. */
const webTagId = z.string().regex(WEB_TAG_ID, { error: webTagIdProblem });

/** A web tag id as people write it in a request. */
export const givenWebTagId = z.string().trim().toUpperCase().regex(WEB_TAG_ID, { error: webTagIdProblem });

const loaderToken = z.string().regex(/^lt_[A-Za-z0-9]{16,64}$/, 'must be lt_ and 16 to 64 letters or digits');
const containerToken = z
  .string()
  .regex(/^ct_[A-Za-z0-9]{16,64}$/, 'must be ct_ and 16 to 64 letters or digits');

const port = z.int().min(1024).max(65535);

/** An image by digest, or a local image by id; tags are refused, because they can move. */
export const imageReference = z
  .string()
  .max(300)
  .regex(
    /^(?:[a-z0-9][a-z0-9._:/-]*@)?sha256:[0-9a-f]{64}$/,
    'must be pinned: name@sha256:<64 hex digits>, or sha256:<id> of a local image',
  );

/**
 * Text without control characters and line breaks. Files may have other hidden characters; `parseManifest` reports
 * them. Half a surrogate pair is replaced, because nothing can store it.
 */
const displayName = z
  .string()
  .overwrite((name) => name.toWellFormed())
  .min(1)
  .max(120)
  .refine(
    (name) => !/[\p{Cc}\u2028\u2029]/u.test(name),
    'must not contain control characters or line breaks',
  );

/** A name as a request gives it. */
export const givenName = z
  .string()
  .min(1)
  .max(120)
  .superRefine((name, context) => {
    const message = textProblem(name);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });

const features = z
  .strictObject(
    Object.fromEntries(FEATURE_FLAGS.map((flag) => [flag, z.boolean().default(false)])) as {
      [Flag in (typeof FEATURE_FLAGS)[number]]: z.ZodDefault<z.ZodBoolean>;
    },
  )
  .prefault({});

type Modules = typeof MODULES;
export const modules = z
  .strictObject(
    Object.fromEntries(Object.entries(MODULES).map(([name, schema]) => [name, z.optional(schema)])) as {
      [Name in keyof Modules]: z.ZodOptional<Modules[Name]>;
    },
  )
  .prefault({});

const domainEntry = z.strictObject({ domain: ownableDomain, webTagId, token: containerToken, sameOrigin });

const armored = (most: number) =>
  z
    .string()
    .max(most)
    .regex(/^-----BEGIN AGE ENCRYPTED FILE-----\n[A-Za-z0-9+/=\n]+-----END AGE ENCRYPTED FILE-----\n?$/, {
      error: 'must be age-encrypted (armored) to the host’s recipient, never plain',
    });

/** PEM: the certificate, then its chain. */
export const certificateChain = z
  .string()
  .max(16_384)
  .regex(/^(?:-----BEGIN CERTIFICATE-----\n[A-Za-z0-9+/=\n]+-----END CERTIFICATE-----\n*)+$/, {
    error: 'must be certificates in PEM, that of the names first',
  });

/** Where the certificates of a site's names come from: the host's folder, or orders at its authority. */
export const tlsMode = z.enum(['files', 'acme']);

/** Keys that a revert changes only for operators. The last call at a key's schema notes it: others make another one. */
export const operatorOnly = z.registry();
/** Keys that the file has even while they have their default. */
export const alwaysWritten = z.registry();
/** Keys of `vhostKeys` that the preview server's vhosts don't get. */
const notForPreview = z.registry();

/** The greatest `maxBodyMb`, in MiB: the edge refuses a longer stated length (`MAX_BODY_OCTETS`), whatever a site allows. */
const MAX_BODY_MB = 8;

/**
 * Optional keys that change how the origin, the preview and the custom domains are served. Each proxy has a table of
 * them (`PerOption`), which doesn't compile while it lacks one.
 */
export const vhostKeys = {
  maxBodyMb: z.int().min(1).max(MAX_BODY_MB).optional().register(notForPreview),
} as const satisfies Readonly<Record<string, z.ZodOptional>>;

/** The same keys, as proxies get them. */
export const vhostOptions = z.strictObject(vhostKeys);
export type VhostOptions = {
  readonly [Key in keyof typeof vhostKeys]?: z.output<(typeof vhostKeys)[Key]>;
};

const shape = z.strictObject({
  version: z.literal(MANIFEST_VERSION),
  site: siteId.register(operatorOnly),
  client: canonicalId.register(operatorOnly),
  container: canonicalId.register(operatorOnly),
  name: displayName,
  host: z
    .string()
    .regex(/^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/, 'must be 1 to 24 of a-z, 0-9 and -')
    .register(operatorOnly),
  state: z.enum(['present', 'absent']).default('present').register(alwaysWritten),
  suspend: z.boolean().default(false),
  /** No default of `true`: see `unproven`. */
  serving: z.boolean().optional(),
  protect: z.boolean().default(false),
  adopt: z.boolean().default(false).register(operatorOnly),
  hostnames: z.strictObject({ edge: hostname, origin: hostname, preview: hostname }).register(operatorOnly),
  ports: z.strictObject({ processing: port, preview: port }).register(operatorOnly),
  loaderToken,
  previousLoaderTokens: z
    .array(z.strictObject({ token: loaderToken, until: z.iso.date() }))
    .max(10)
    .default([]),
  domains: z.array(domainEntry).min(1).max(20),
  customDomains: z.array(ownableDomain).max(20).default([]).register(alwaysWritten),
  /** No default of `[]`, so that a manifest without the key equals its record in the database. */
  unproven: z.array(ownableDomain).max(40).optional(),
  image: imageReference.register(operatorOnly),
  tls: z
    .strictObject({
      mode: z.enum([...tlsMode.options, 'uploaded']),
      /** With `uploaded`, where the certificates of other names come from. */
      others: tlsMode.optional(),
      certificate: certificateChain.optional(),
      /** The private key in PEM, encrypted with age (armored). */
      key: armored(16_384).optional(),
    })
    .prefault({ mode: 'files' }),
  /** The CONTAINER_CONFIG, encrypted with age (armored). */
  containerConfig: armored(8192),
  /** A Google Cloud service account's key: what names it, and its JSON encrypted with age (armored). */
  serviceAccount: serviceAccountFacts.extend({ key: armored(16_384) }).optional(),
  resources: containerResources.prefault({}),
  ...vhostKeys,
  ...consentKeys,
  features: features.register(alwaysWritten),
  modules,
});

/**
 * A site manifest (`<siteId>.yaml`). Strict: an unknown key is an error with its path. Parsing adds the defaults: a
 * default that is written out and one that is omitted are the same desired state.
 */
export const manifestSchema = shape.superRefine((manifest, context) => {
  const refuse = (path: (string | number)[], message: string) =>
    context.addIssue({ code: 'custom', path, message });
  const unique = (values: readonly string[], path: string, what: string) => {
    values.forEach((value, index) => {
      if (values.indexOf(value) !== index) refuse([path, index], `${what} ${value} is listed twice`);
    });
  };
  const domains = manifest.domains.map(({ domain }) => domain);
  unique(domains, 'domains', 'domain');
  const tokens = manifest.domains.map(({ token }) => token);
  unique(tokens, 'domains', 'token');
  unique(manifest.customDomains, 'customDomains', 'custom domain');
  manifest.unproven?.forEach((domain, index) => {
    if (registrableDomain(domain) !== domain) {
      refuse(['unproven', index], `must be a registrable domain: ${registrableDomain(domain)}`);
    }
  });
  unique(Object.values(manifest.hostnames), 'hostnames', 'hostname');
  for (const [key, name] of Object.entries(manifest.hostnames)) {
    if (name.length <= MAX_SERVED) continue;
    refuse(['hostnames', key], `must have at most ${MAX_SERVED} characters: a longer name can't be served`);
  }
  if (manifest.ports.processing === manifest.ports.preview)
    refuse(['ports', 'preview'], 'must differ from ports.processing');
  const { mode, ...uploaded } = manifest.tls;
  for (const key of ['certificate', 'key'] as const) {
    if (mode === 'uploaded' && uploaded[key] === undefined)
      refuse(['tls', key], 'is missing for mode: uploaded');
  }
  for (const key of Object.keys(uploaded)) {
    if (mode !== 'uploaded') refuse(['tls', key], 'is only for mode: uploaded');
  }
  for (const { path, message } of hidingPaths(manifest)) refuse(path, message);
  manifest.customDomains.forEach((custom, index) => {
    const path = ['customDomains', index];
    if (!isFirstPartyHost(custom, domains))
      refuse(path, `${custom} is not under the registrable part of any of the site's domains`);
    const most = Math.min(MAX_SERVED, MAX_FILE_STEM - manifest.site.length);
    if (custom.length > most)
      refuse(path, `must have at most ${most} characters: a longer name of this site can't be served`);
    if (Object.values(manifest.hostnames).includes(custom))
      refuse(path, `${custom} is one of the site's own hostnames`);
  });
});

/**
 * Whether a name counts as the client's own. For other names, only the site's edge hostname serves the pages: they have
 * no first-party host, certificate or prefix, and the site doesn't claim them.
 */
export function isProven({ unproven = [] }: Pick<Manifest, 'unproven'>, host: string): boolean {
  return !unproven.some((domain) => isWithinDomain(host, domain));
}

/** The first-party hosts that are served. */
export function provenHosts(manifest: Pick<Manifest, 'customDomains' | 'unproven'>): string[] {
  return manifest.customDomains.filter((host) => isProven(manifest, host));
}

/** Whether the edge trusts `host` as first-party: it is within the registrable domain of one of `domains`. */
export function isFirstPartyHost(host: string, domains: readonly string[]): boolean {
  return domains.some((domain) => {
    const registrable = registrableDomain(domain);
    return registrable !== null && isWithinDomain(host, registrable);
  });
}

/** The options that a manifest sets for one kind of vhosts; `undefined`: none. */
export function vhostOptionsOf(manifest: VhostOptions, of?: 'preview'): VhostOptions | undefined {
  const skipped = (key: string) =>
    of === 'preview' && notForPreview.has(vhostOptions.shape[key as keyof VhostOptions]);
  const set = Object.entries(vhostOptions.strip().parse(manifest)).filter(([key]) => !skipped(key));
  return set.length === 0 ? undefined : Object.fromEntries(set);
}

export type Manifest = z.output<typeof manifestSchema>;
export type ManifestInput = z.input<typeof manifestSchema>;
