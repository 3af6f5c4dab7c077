import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { changeMember, clientExists, insertClient, removeMember } from './members.repository.ts';
import { clientView, memberParams, memberRole, memberView, newClient } from './members.schema.ts';

/** Clients and their members, for super-admins. The super-admins are set by configuration, not by data. */
export function membersRoutes({ db, settings }: Context): FastifyPluginAsyncZod {
  return async (app) => {
    app.addHook('preHandler', async (request) => {
      if (!settings.superAdmins.includes(callerOf(request).subject)) throw new ManagementProblem('forbidden');
    });

    app.post(
      '/clients',
      {
        schema: {
          operationId: 'createClient',
          summary: 'Create a client with its members',
          tags: ['clients'],
          body: newClient,
          response: { 201: clientView, ...problems('invalid_request', 'forbidden') },
        },
      },
      async (request, reply) => {
        const { name, members } = request.body;
        const id = await insertClient(db, name, members);
        return reply.status(201).send({ id, name, members });
      },
    );

    app.put(
      '/clients/:id/members/:subject',
      {
        schema: {
          operationId: 'putMember',
          summary: 'Give a subject a role in a client',
          tags: ['clients'],
          params: memberParams,
          body: memberRole,
          response: {
            200: memberView,
            ...problems('invalid_request', 'forbidden', 'unknown_client', 'last_owner'),
          },
        },
      },
      async (request) => {
        const { id, subject } = request.params;
        if (!(await clientExists(db, id))) throw new ManagementProblem('unknown_client');
        await changeMember(db, id, { subject, role: request.body.role });
        return { subject, role: request.body.role };
      },
    );

    app.delete(
      '/clients/:id/members/:subject',
      {
        schema: {
          operationId: 'removeMember',
          summary: 'Remove a subject from a client; its event streams end',
          tags: ['clients'],
          params: memberParams,
          response: {
            204: z.null().meta({ description: 'the subject is not a member any more' }),
            ...problems('invalid_request', 'forbidden', 'unknown_client', 'unknown_member', 'last_owner'),
          },
        },
      },
      async (request, reply) => {
        const { id, subject } = request.params;
        if (!(await clientExists(db, id))) throw new ManagementProblem('unknown_client');
        if (!(await removeMember(db, id, subject))) throw new ManagementProblem('unknown_member');
        return reply.status(204).send(null);
      },
    );
  };
}
