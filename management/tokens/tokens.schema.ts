import { z } from 'zod';
import { givenId, givenName } from '../../sites/manifest/schema.ts';
import { examples } from '../http/examples.ts';
import { pageQuery, pageSchema } from '../view/page.ts';

const EXAMPLE_ID = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

const scopes = z
  .array(z.enum(['viewer', 'editor', 'admin']))
  .length(1)
  .meta({
    description: 'one role, which the token has in its client, or in all clients of its organisation',
  });

export const newServiceToken = z
  .strictObject({
    name: givenName,
    client: z.uuid().optional(),
    organisation: z.uuid().optional(),
    scopes,
    expiresAt: z.iso.datetime().nullable().optional().meta({
      description:
        'default: in 90 days, but not later than the calling token expires; null: never, unless the calling token expires',
    }),
  })
  .refine(({ client, organisation }) => (client === undefined) !== (organisation === undefined), {
    message: 'must name either a client or an organisation',
    path: ['client'],
  })
  .meta(
    examples({
      'for a deployment': {
        name: 'CI',
        client: EXAMPLE_ID,
        scopes: ['editor'],
        expiresAt: '2030-01-01T00:00:00Z',
      },
    }),
  );

export const serviceToken = z
  .object({
    id: z.uuid(),
    name: z.string(),
    client: z.uuid().nullable(),
    organisation: z.uuid().nullable(),
    scopes: z.array(z.string()),
    createdBy: z.string().meta({ description: 'subject' }),
    createdAt: z.iso.datetime(),
    expiresAt: z.iso.datetime().nullable(),
    lastUsedAt: z.iso.datetime().nullable().meta({ description: 'up to a minute late' }),
  })
  .meta({ id: 'ServiceToken' });

export const createdToken = serviceToken
  .extend({
    value: z.string().meta({ description: 'send it as `Authorization: Bearer`; it is shown only now' }),
  })
  .meta({ id: 'CreatedServiceToken' });

export const tokenPage = pageSchema(serviceToken).meta({
  id: 'ServiceTokenList',
  description: 'the newest first',
});
export const tokenParams = z.strictObject({ id: givenId });
export const tokenQuery = z.strictObject({
  client: z.uuid().optional(),
  organisation: z.uuid().optional(),
  ...pageQuery,
});
