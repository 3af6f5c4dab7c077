import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Context } from '../context/context.ts';
import { TenantChanges } from './change.service.ts';
import { clientsRoutes } from './clients.routes.ts';
import { allInvitationsRoutes, invitationsRoutes } from './invitations.routes.ts';
import { meRoutes } from './me.routes.ts';
import { membersRoutes } from './members.routes.ts';
import { organisationsRoutes } from './organisations.routes.ts';
import type { TenantProjection } from './projection.ts';

/** All routes of clients, organisations and their members. */
export function tenantRoutes(context: Context, projection: TenantProjection): FastifyPluginAsyncZod {
  const parts = { context, changes: new TenantChanges(context, projection) };
  return async (app) => {
    await app.register(meRoutes(context));
    await app.register(clientsRoutes(parts));
    await app.register(organisationsRoutes(parts));
    for (const kind of ['clients', 'organisations'] as const) {
      await app.register(membersRoutes(parts, kind));
      await app.register(invitationsRoutes(parts, kind));
    }
    await app.register(allInvitationsRoutes(parts));
  };
}
