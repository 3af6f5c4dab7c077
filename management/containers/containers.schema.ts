import { z } from 'zod';
import { sameOriginPath } from '../../sites/manifest/same-origin.ts';
import {
  certificateChain,
  givenId,
  givenName,
  givenWebTagId,
  givenDomain as host,
  imageReference,
  modules,
} from '../../sites/manifest/schema.ts';
import { ALWAYS_ON_MESSAGE, ignoredSwitches } from '../../sites/manifest/switches.ts';
import {
  givenClientKeys,
  givenContainer,
  givenContainerResources,
  givenFeatures,
  givenTls,
} from '../../sites/requests/container.ts';
import { examples } from '../http/examples.ts';
import { dryRun } from '../view/plan.ts';

const givenSameOrigin = z.strictObject({ path: sameOriginPath.optional() });

export const newContainer = givenContainer.meta(
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
    features: givenFeatures.optional().meta({ description: 'flags that aren’t named are unchanged' }),
    modules: modules
      .unwrap()
      .optional()
      .meta({ description: 'modules that are named are replaced, the others are unchanged' }),
    ...givenClientKeys,
    tls: givenTls.optional(),
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
      'in two places, no tags before a grant': {
        regions: [{ places: ['DE', 'US-CA'], consent: 'required', consentMode: 'basic' }],
      },
      'a path of the tag server': { modules: { server_proxy: { paths: ['/data', '/webhooks/*'] } } },
      'certificates from an authority': { tls: 'acme' },
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
    webTagId: givenWebTagId
      .optional()
      .meta({ description: 'required for a domain that the container lacks' }),
    sameOrigin: givenSameOrigin.nullable().optional().meta({
      description:
        'a path under which the domain’s own server forwards to the edge; `{}`: a generated path, or the present one; null: none',
    }),
  })
  .meta(
    examples({
      'a domain': { domain: 'shop.acme.example', webTagId: 'GTM-ABC1234' },
      'no same-origin path': { domain: 'shop.acme.example', sameOrigin: null },
      'a same-origin path': { domain: 'shop.acme.example', sameOrigin: { path: '/m3trics1' } },
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

export const domainParams = z.strictObject({ id: givenId, domain: host });
export const newForwarderToken = z
  .strictObject({
    graceUntil: z
      .union([z.iso.date(), z.iso.datetime({ offset: true })])
      .optional()
      .meta({
        description:
          'the old token is accepted until this time (UTC; a date means its beginning), at most 90 days from now; if the time has passed, the old token is refused from now on; default: 30 days from now',
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

export const certificatePair = z
  .strictObject({
    certificate: z
      .string()
      .transform((pem) => `${pem.replaceAll('\r', '').trim()}\n`)
      .pipe(certificateChain)
      .meta({ description: 'PEM: the certificate, then its chain' }),
    privateKey: z.string().max(8_192).meta({ description: 'its private key, PEM without a password' }),
  })
  .meta(
    examples({
      'a pair': {
        certificate: '-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----\n',
        privateKey: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
      },
    }),
  );

export const readHeaders = z.looseObject({ 'if-none-match': z.string().max(1024).optional() });
