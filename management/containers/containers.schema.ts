import { z } from 'zod';
import { givenConsent } from '../../gitops/manifest/consent.ts';
import { givenResources } from '../../gitops/manifest/resources/schema.ts';
import { sameOriginPath } from '../../gitops/manifest/same-origin.ts';
import {
  givenName,
  givenDomain as host,
  imageReference,
  modules,
  webTagId,
} from '../../gitops/manifest/schema.ts';
import { ALWAYS_ON_MESSAGE, ignoredSwitches } from '../../gitops/manifest/switches.ts';
import { FEATURE_FLAGS } from '../../plugins/document.ts';
import { examples } from '../http/examples.ts';
import { dryRun } from '../view/plan.ts';

const givenSameOrigin = z.strictObject({ path: sameOriginPath.optional() });

const features = z.partialRecord(z.enum(FEATURE_FLAGS), z.boolean());

const consent = {
  consent: givenConsent.consent.optional().meta({
    description: '`opt_out`: visitors are identified unless they refuse; `required`: only after a grant',
  }),
  consentMode: givenConsent.consentMode.optional().meta({
    description: '`basic`: no tag loads before a grant; `advanced`: tags load and act by Consent Mode',
  }),
  fallback: givenConsent.fallback.optional().meta({
    description: '`vendor`: pages load the vendor’s script directly while the edge fails; `none`: no tag',
  }),
  regions: givenConsent.regions.optional().meta({
    description: 'places with other rules, all of them; a visitor of unknown place gets the strictest',
  }),
  consentMaxDays: givenConsent.consentMaxDays.optional().meta({
    description: 'from this age on a consent counts as none, if the page says when it was given',
  }),
};

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
      issue(['webTagIds', key], 'is none of the domains');
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
  webTagIds: z.record(z.string().max(255), webTagId).meta({ description: 'by domain' }),
};

const givenContainerResources = givenResources.optional().meta({
  description:
    'memory such as `512m`, parts of a core, what a pod of a cluster requests of both (at most the limit; replaced as a whole, `{}` restores the defaults), and replicas: a number, or `{ min, max }` between which a cluster scales (a host with Docker runs `min`, a cluster at least 2 of a number); more than 2 GB or 4 replicas only for operators',
});

export const newContainer = z
  .strictObject({
    clientId: z.uuid().optional().meta({ description: 'the same as `client`', deprecated: true }),
    client: z.uuid().optional().meta({ description: 'required, unless `clientId` names it' }),
    name: givenName,
    ...givenPages,
    containerConfigB64,
    features: features.default({}),
    modules: modules,
    ...consent,
    resources: givenContainerResources,
  })
  .transform((body, context) => {
    const issue = (path: PropertyKey[], message: string) =>
      context.issues.push({ code: 'custom', path, message, input: body });
    const pages = pagesOf(body, issue);
    for (const path of ignoredSwitches(body.modules)) issue(path, ALWAYS_ON_MESSAGE);
    const { domains: _, webTagIds: __, client, clientId = client, ...rest } = body;
    if (clientId === undefined) issue(['client'], 'is missing: the client that gets the container');
    else if (client !== undefined && client !== clientId) issue(['clientId'], 'is another one than `client`');
    return { clientId: clientId ?? '', ...rest, pages };
  })
  .meta(
    examples({
      'one domain': {
        client: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
        name: 'Acme Shop',
        domains: ['acme.example'],
        webTagIds: { 'acme.example': 'GTM-ABC1234' },
        containerConfigB64: 'aWQ9R1RNLVNSVjAwMDEmZW52PTEmYXV0aD15b3VyLWF1dGg=',
      },
      'several domains': {
        client: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
        name: 'Acme everywhere',
        domains: ['acme-de.example', 'acme-fr.example'],
        webTagIds: { 'acme-de.example': 'GTM-ABC1234', 'acme-fr.example': 'GTM-ABC5678' },
        containerConfigB64: 'aWQ9R1RNLVNSVjAwMDEmZW52PTEmYXV0aD15b3VyLWF1dGg=',
        features: { multi_domain: true },
      },
    }),
  );
export type NewContainer = z.output<typeof newContainer>;

export const containerPatch = z
  .strictObject({
    name: givenName.optional(),
    features: features.optional().meta({ description: 'flags that aren’t named are unchanged' }),
    modules: modules
      .unwrap()
      .optional()
      .meta({ description: 'modules that are named are replaced, the others are unchanged' }),
    ...consent,
    resources: givenContainerResources,
    image: imageReference.optional().meta({
      description:
        'for operators only: the tag server’s image, pinned by digest, from an allowed repository; the old container is removed after the new one is healthy',
    }),
  })
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), 'names nothing to change')
  .superRefine(({ modules: given = {} }, context) => {
    for (const path of ignoredSwitches(given)) {
      context.addIssue({ code: 'custom', path, message: ALWAYS_ON_MESSAGE, input: false });
    }
  })
  .meta(
    examples({
      'a name': { name: 'Acme Shop' },
      'a feature': { features: { cookie_restoration: true } },
      'nothing before a grant in two places': {
        regions: [{ places: ['DE', 'US-CA'], consent: 'required', consentMode: 'basic' }],
      },
      'a path of the tag server': { modules: { server_proxy: { paths: ['/data', '/webhooks/*'] } } },
      'more memory': { resources: { processing: { memory: '1g' } } },
      'two to four containers in a cluster': {
        resources: { processing: { replicas: { min: 2, max: 4 }, requests: { cpus: 0.2 } } },
      },
      'an image': { image: `gcr.io/cloud-tagging-10302018/gtm-cloud-image@sha256:${'0'.repeat(64)}` },
    }),
  );

/** Whether a patch names the image and nothing else. */
export function isOnlyImage({ image, ...rest }: z.output<typeof containerPatch>): boolean {
  return image !== undefined && Object.values(rest).every((value) => value === undefined);
}

export const newDomain = z
  .strictObject({
    domain: host,
    webTagId: webTagId.optional().meta({ description: 'required for a domain that the container lacks' }),
    sameOrigin: givenSameOrigin.nullable().optional().meta({
      description:
        'a path under which the domain’s own server forwards to the edge; `{}`: a generated path, or the present one; null: none',
    }),
  })
  .meta(
    examples({
      'a domain': { domain: 'shop.acme.example', webTagId: 'GTM-ABC1234' },
      'no path of the same origin': { domain: 'shop.acme.example', sameOrigin: null },
      'a path of the same origin': { domain: 'shop.acme.example', sameOrigin: { path: '/m3trics1' } },
    }),
  );
export const newCustomDomain = z
  .strictObject({ domain: host })
  .meta(examples({ 'a host': { domain: 'metrics.acme.example' } }));
export const domainQuery = z.strictObject({ domain: host, dryRun });
export const newLoaderToken = z
  .strictObject({
    graceUntil: z.iso
      .date()
      .optional()
      .meta({ description: 'the old token is accepted until this date (UTC); default: 30 days from now' }),
  })
  .meta(examples({ 'thirty days': {}, 'a date': { graceUntil: '2030-01-31' } }));

export const domainParams = z.strictObject({ id: z.uuid(), domain: host });
export const newForwarderToken = z
  .strictObject({
    graceUntil: z
      .union([z.iso.date(), z.iso.datetime({ offset: true })])
      .optional()
      .meta({
        description:
          'the old token is accepted until this time (UTC; a date: its beginning); at most 90 days from now; a past one: it is refused from now on; default: 30 days from now',
      }),
  })
  .meta(
    examples({
      'no grace': { graceUntil: '2020-01-01' },
      'a past time': { graceUntil: '2020-01-31T12:00:00Z' },
    }),
  );

export const serviceAccountKey = z
  .record(z.string().max(100), z.unknown())
  .meta({ description: 'the JSON key of a service account as Google Cloud’s console downloads it' })
  .meta(
    examples({
      'a key': {
        type: 'service_account',
        project_id: 'acme-analytics',
        private_key_id: '0123456789abcdef0123456789abcdef01234567',
        private_key: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
        client_email: 'tag-server@acme-analytics.iam.gserviceaccount.com',
      },
    }),
  );

export const readHeaders = z.looseObject({ 'if-none-match': z.string().max(1024).optional() });
