import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { demandOperator } from '../access/operators.ts';
import { demandRoleIn } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { dryRunQuery, isDryRun, planAnswer } from '../view/plan.ts';
import { newPolicy, policyHeaders, policyParams, policyView } from './policies.schema.ts';
import { changePolicy, type PolicyOwner, planPolicy, policyTag, readPolicy } from './policy-file.ts';

const INSTANCE: PolicyOwner = { file: 'policy.js', client: null };
const ofClient = (client: string): PolicyOwner => ({ file: `clients/${client}.policy.js`, client });

const READING = ['invalid_request', 'forbidden', 'unknown_policy', 'sites_repo_unavailable'] as const;
const WRITING = [...READING, 'precondition_failed', 'commit_refused'] as const;

/**
 * The policy scripts, which limit what the templates of tag servers may do: one of each client, for its owners,
 * its admins and operators, and one of the instance, for operators only.
 */
export function policiesRoutes(context: Context): FastifyPluginAsyncZod {
  const { settings } = context;

  async function show(owner: PolicyOwner, reply: FastifyReply) {
    const policy = await readPolicy(context, owner);
    reply.header('etag', policyTag(policy.script));
    return policy;
  }

  function changeOf(request: FastifyRequest, script: string | null) {
    const { 'if-match': ifMatch } = request.headers;
    return { caller: callerOf(request), requestId: request.id, ifMatch, script };
  }

  async function write(owner: PolicyOwner, script: string, request: FastifyRequest, reply: FastifyReply) {
    const change = changeOf(request, script);
    if (isDryRun(request.query)) return await planPolicy(context, owner, change);
    await changePolicy(context, owner, change);
    return await show(owner, reply);
  }

  async function remove(owner: PolicyOwner, request: FastifyRequest, reply: FastifyReply) {
    const change = changeOf(request, null);
    if (isDryRun(request.query)) return await planPolicy(context, owner, change);
    await changePolicy(context, owner, change);
    return reply.status(204).send(null);
  }

  async function demandClient(request: FastifyRequest, id: string): Promise<PolicyOwner> {
    await demandRoleIn(context, { kind: 'clients', id }, callerOf(request), 'act');
    return ofClient(id);
  }

  const description =
    'The instance’s script applies first, then the client’s. The containers of the sites are replaced by a swap, and read the script when they start.';
  const written = { 200: z.union([policyView, planAnswer]), ...problems(...WRITING, 'invalid_policy') };
  const removed = { 200: planAnswer, 204: z.null(), ...problems(...WRITING) };
  const ofClients = { tags: ['clients'], params: policyParams };
  const change = { headers: policyHeaders, querystring: dryRunQuery };

  return async (app) => {
    app.get(
      '/clients/:id/policy',
      {
        config: { access: 'act', operators: true },
        schema: {
          ...ofClients,
          operationId: 'getClientPolicy',
          summary: 'Read the policy script of a client’s sites',
          response: { 200: policyView, ...problems(...READING, 'unknown_client') },
        },
      },
      async (request, reply) => await show(await demandClient(request, request.params.id), reply),
    );

    app.put(
      '/clients/:id/policy',
      {
        config: { access: 'act', operators: true },
        schema: {
          ...ofClients,
          ...change,
          operationId: 'setClientPolicy',
          summary: 'Set the policy script of a client’s sites',
          description,
          body: newPolicy,
          response: { ...written, ...problems(...WRITING, 'invalid_policy', 'unknown_client') },
        },
      },
      async (request, reply) =>
        await write(await demandClient(request, request.params.id), request.body.script, request, reply),
    );

    app.delete(
      '/clients/:id/policy',
      {
        config: { access: 'act', operators: true },
        schema: {
          ...ofClients,
          ...change,
          operationId: 'deleteClientPolicy',
          summary: 'Delete the policy script of a client’s sites',
          response: { ...removed, ...problems(...WRITING, 'unknown_client') },
        },
      },
      async (request, reply) => await remove(await demandClient(request, request.params.id), request, reply),
    );

    app.get(
      '/policy',
      {
        config: { access: 'operate' },
        schema: {
          tags: ['instance'],
          operationId: 'getPolicy',
          summary: 'Read the policy script of all sites',
          response: { 200: policyView, ...problems(...READING) },
        },
      },
      async (request, reply) => {
        demandOperator(settings, request);
        return await show(INSTANCE, reply);
      },
    );

    app.put(
      '/policy',
      {
        config: { access: 'operate' },
        schema: {
          ...change,
          tags: ['instance'],
          operationId: 'setPolicy',
          summary: 'Set the policy script of all sites',
          description,
          body: newPolicy,
          response: written,
        },
      },
      async (request, reply) => {
        demandOperator(settings, request);
        return await write(INSTANCE, request.body.script, request, reply);
      },
    );

    app.delete(
      '/policy',
      {
        config: { access: 'operate' },
        schema: {
          ...change,
          tags: ['instance'],
          operationId: 'deletePolicy',
          summary: 'Delete the policy script of all sites',
          response: removed,
        },
      },
      async (request, reply) => {
        demandOperator(settings, request);
        return await remove(INSTANCE, request, reply);
      },
    );
  };
}
