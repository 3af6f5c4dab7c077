import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { listClients, listOrganisations } from './lists.repository.ts';
import { clientView, organisationView } from './tenants.schema.ts';

/**
 * More clients or organisations than any subject should have. `/me` cuts a longer list; the list endpoints page through all
 * of it.
 */
const MOST = 10_000;

const me = z
  .object({
    subject: z.string(),
    name: z.string(),
    email: z.string(),
    isOperator: z.boolean(),
    scopes: z
      .array(z.string())
      .nullable()
      .meta({ description: 'the scopes of the calling service token; null: a person calls' }),
    organisations: z.array(organisationView).meta({ description: 'without archived ones' }),
    clients: z.array(clientView).meta({
      description:
        'without archived ones; `role` is the stronger of the caller’s own role in the client and the one from its organisation',
    }),
  })
  .meta({ id: 'Me' });

/** Who calls, and what the caller may see. */
export function meRoutes(context: Context): FastifyPluginAsyncZod {
  const { db } = context;
  return async (app) => {
    app.get(
      '/me',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'getMe',
          summary: 'Read who the caller is, with the roles in organisations and clients',
          tags: ['clients'],
          response: { 200: me, ...problems() },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const { subject, name, email, scopes = null } = caller;
        const filter = { subject, all: false, archived: false, after: null, limit: MOST };
        const [organisations, clients] = await Promise.all([
          listOrganisations(db, filter),
          listClients(db, filter),
        ]);
        return {
          subject,
          name,
          email,
          isOperator: isOperator(context, caller),
          scopes: scopes === null ? null : [...scopes],
          organisations,
          clients,
        };
      },
    );
  };
}
