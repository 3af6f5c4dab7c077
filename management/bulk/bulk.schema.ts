import { z } from 'zod';
import { examples } from '../http/examples.ts';
import { dryRunQuery } from '../view/plan.ts';

export const MOST_ITEMS = 100;

interface VerbEndpoint {
  readonly method: 'PATCH' | 'DELETE' | 'POST' | 'PUT';
  /** The rest of the path after `/server-containers/:id`. */
  path(place: Place): string;
  /** What the address names besides the container. */
  readonly needs?: keyof Place;
  /** The endpoint takes an `Idempotency-Key`. */
  readonly isCreation?: true;
}

interface Place {
  readonly domain?: string | undefined;
  readonly token?: string | undefined;
}

const named = (value: string | undefined) => encodeURIComponent(value ?? '');
const at = (path: string) => () => path;
const byDomain = (path: string) => ({
  path: ({ domain }: Place) => `${path}?domain=${named(domain)}`,
  needs: 'domain' as const,
});

/** What a bulk request can do with a container, each by an endpoint of its own. */
const ENDPOINTS = {
  change: { method: 'PATCH', path: at('') },
  remove: { method: 'DELETE', path: at('') },
  restore: { method: 'POST', path: at('/restore') },
  clone: { method: 'POST', path: at('/clone'), isCreation: true },
  revert: { method: 'POST', path: at('/revert') },
  suspend: { method: 'POST', path: at('/suspend') },
  resume: { method: 'POST', path: at('/resume') },
  protect: { method: 'POST', path: at('/protect') },
  verify: { method: 'POST', path: at('/verify') },
  setConfig: { method: 'PUT', path: at('/config') },
  setCertificate: { method: 'PUT', path: at('/certificate') },
  setServiceAccount: { method: 'PUT', path: at('/service-account') },
  removeServiceAccount: { method: 'DELETE', path: at('/service-account') },
  addDomain: { method: 'POST', path: at('/domains') },
  removeDomain: { method: 'DELETE', ...byDomain('/domains') },
  orderDomains: { method: 'PUT', path: at('/domains/order') },
  addCustomDomain: { method: 'POST', path: at('/custom-domains') },
  removeCustomDomain: { method: 'DELETE', ...byDomain('/custom-domains') },
  rotateLoaderToken: { method: 'POST', path: at('/loader-tokens/rotate') },
  revokeLoaderToken: {
    method: 'DELETE',
    path: ({ token }: Place) => `/loader-tokens/${named(token)}`,
    needs: 'token',
  },
  rotateForwarderToken: {
    method: 'POST',
    path: ({ domain }: Place) => `/domains/${named(domain)}/forwarder-token`,
    needs: 'domain',
  },
} as const satisfies Readonly<Record<string, VerbEndpoint>>;
type Verb = keyof typeof ENDPOINTS;

export function endpointOf(verb: Verb): VerbEndpoint {
  return ENDPOINTS[verb];
}

const verb = z.enum(Object.keys(ENDPOINTS) as [Verb, ...Verb[]]); // Object.keys drops the key type

const item = z
  .strictObject({
    verb,
    id: z.uuid(),
    body: z
      .record(z.string(), z.unknown())
      .optional()
      .meta({ description: 'as the endpoint of the verb takes it' }),
    domain: z
      .string()
      .max(255)
      .optional()
      .meta({ description: 'for removeDomain, removeCustomDomain and rotateForwarderToken' }),
    token: z.string().max(100).optional().meta({ description: 'for revokeLoaderToken' }),
    ifMatch: z.string().max(1024).optional().meta({ description: 'the item’s `If-Match`' }),
    plan: z.string().max(128).optional().meta({ description: 'the item’s `x-tagyard-plan`' }),
  })
  .superRefine((given, context) => {
    const { needs } = endpointOf(given.verb);
    for (const path of ['domain', 'token'] as const) {
      if ((given[path] === undefined) === (needs !== path)) continue;
      const message = needs === path ? `is missing: ${given.verb} needs it` : `${given.verb} takes none`;
      context.addIssue({ code: 'custom', path: [path], message, input: given[path] });
    }
  });

export const bulkRequest = z.strictObject({ items: z.array(item).min(1).max(MOST_ITEMS) }).meta(
  examples({
    'a feature of two containers': {
      items: [
        {
          verb: 'change',
          id: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f',
          body: { features: { cookie_restoration: true } },
        },
        {
          verb: 'change',
          id: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
          body: { features: { cookie_restoration: true } },
        },
      ],
    },
    'one domain less, and a new loader token': {
      items: [
        { verb: 'removeDomain', id: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f', domain: 'old.acme.example' },
        { verb: 'rotateLoaderToken', id: '3f1f2f0e-54a5-4d6b-8f9e-0a1b2c3d4e5f' },
      ],
    },
  }),
);
export type BulkItem = z.output<typeof item>;

export const bulkQuery = dryRunQuery;

const outcome = z
  .object({
    verb,
    id: z.uuid(),
    status: z.int().meta({ description: 'HTTP status of the item' }),
    done: z
      .boolean()
      .meta({ description: 'false: the item is refused or has failed, and `answer` is the problem' }),
    answer: z.unknown().meta({ description: 'the answer of the verb’s endpoint' }),
  })
  .meta({ id: 'BulkOutcome' });
export type BulkOutcome = z.output<typeof outcome>;

export const bulkAnswer = z
  .object({
    items: z.array(outcome).meta({ description: 'in the order of the request' }),
    done: z.int(),
    refused: z.int(),
  })
  .meta({ id: 'BulkAnswer' });
