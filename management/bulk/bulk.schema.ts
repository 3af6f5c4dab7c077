import { z } from 'zod';
import { examples } from '../http/examples.ts';
import { dryRunQuery } from '../view/plan.ts';

export const MOST_ITEMS = 100;

/** What a bulk request can do with a container: what has the same effect if it is done twice. */
export const VERBS = {
  change: { method: 'PATCH', path: '' },
  remove: { method: 'DELETE', path: '' },
  restore: { method: 'POST', path: '/restore' },
  suspend: { method: 'POST', path: '/suspend' },
  resume: { method: 'POST', path: '/resume' },
  protect: { method: 'POST', path: '/protect' },
  verify: { method: 'POST', path: '/verify' },
} as const;
type Verb = keyof typeof VERBS;

const verb = z.enum(Object.keys(VERBS) as [Verb, ...Verb[]]); // Object.keys drops the key type

const item = z.strictObject({
  verb,
  id: z.uuid(),
  body: z
    .record(z.string(), z.unknown())
    .optional()
    .meta({ description: 'as the endpoint of the verb takes it' }),
  ifMatch: z.string().max(1024).optional().meta({ description: 'the item’s `If-Match`' }),
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
