import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import { fieldErrors } from '../../base/http/problem.ts';
import type { Database } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { strongestRoleInAny } from '../records/memberships.repository.ts';
import { demandOperator } from './operators.ts';
import { type Access, demandSufficient, isPurpose } from './roles.ts';
import { demandOpen, isOperator, ownRole, roleIn, type TenantRef, tenantOf } from './tenants.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whom else the body may open the route to: `acting` in an organisation that it names, or operators. */
    bodyOpensTo?: 'acting' | 'operators';
    /** Also open where the client or organisation is archived. */
    inArchived?: true;
  }
}

interface Parts {
  readonly db: Database;
  readonly settings: { readonly superAdmins: readonly string[] };
}

export const READS: readonly string[] = ['GET', 'HEAD', 'OPTIONS'];

/** The objects in the addresses of routes, and the answer to callers without a role in their client or organisation. */
const OBJECTS = {
  clients: 'unknown_client',
  organisations: 'unknown_organisation',
  'server-containers': 'unknown_container',
  webhooks: 'unknown_webhook',
  tokens: 'unknown_token',
} as const;
type Folder = keyof typeof OBJECTS;

/**
 * Refuses a mutation before its body is read, unless the caller has the role that the route demands, and the client or
 * organisation isn't archived. Where only the body names it, the caller must have the role in any. A body may take
 * long to arrive, so handlers judge the role again.
 */
export function registerRights(api: FastifyInstance, parts: Parts): void {
  api.addHook('onRequest', async (request) => {
    const { access = 'self' } = request.routeOptions.config;
    if (READS.includes(request.method) || access === 'self') return;
    const folder = addressedObject(request);
    await (folder === null
      ? demandAnywhere(parts, request, access)
      : demandInObject(parts, request, { folder, access }));
  });
}

async function demandInObject(
  parts: Parts,
  request: FastifyRequest,
  { folder, access }: { readonly folder: Folder; readonly access: Access },
): Promise<void> {
  const { schema, config } = request.routeOptions;
  const params = schema?.params as z.ZodType<{ id: string }>; // of every route with an id
  const { success, error, data } = params.safeParse(request.params);
  if (!success) throw new ManagementProblem('invalid_request', { errors: fieldErrors(error.issues) });
  const caller = callerOf(request);
  const ref = await tenantAt(parts.db, folder, data.id);
  const mayOperate = config.operators === true || config.bodyOpensTo === 'operators';
  const role = ref && (await (mayOperate ? roleIn(parts, ref, caller) : ownRole(parts.db, ref, caller)));
  if (ref === null || role === null) throw new ManagementProblem(OBJECTS[folder]);
  if (isPurpose(access)) demandSufficient(role, access);
  // A deletion gives nobody anything: it stays possible.
  if (config.inArchived !== true && request.method !== 'DELETE') await demandOpen(parts.db, ref);
}

async function demandAnywhere(parts: Parts, request: FastifyRequest, access: Access): Promise<void> {
  const { operators, bodyOpensTo } = request.routeOptions.config;
  const { db, settings } = parts;
  const caller = callerOf(request);
  if ((operators === true || access === 'operate') && isOperator(parts, caller)) return;
  if (isPurpose(access)) {
    const role = await strongestRoleInAny(db, 'clients and organisations', caller.subject);
    if (role === null) throw new ManagementProblem('unknown_client');
    demandSufficient(role, access);
    return;
  }
  const role =
    bodyOpensTo === 'acting' ? await strongestRoleInAny(db, 'organisations', caller.subject) : null;
  if (role === null) demandOperator(settings, request);
  else demandSufficient(role, 'act');
}

/** The object that a route is about. `null`: its address names none. */
export function addressedObject({
  routeOptions: { url = '' },
}: Pick<FastifyRequest, 'routeOptions'>): Folder | null {
  const [, folder = '', id] = url.split('/');
  return id === ':id' && folder in OBJECTS ? (folder as Folder) : null;
}

/** The client or organisation that an object belongs to. `null`: there is no such object. */
async function tenantAt(db: Database, folder: Folder, id: string): Promise<TenantRef | null> {
  if (folder === 'clients' || folder === 'organisations') return { kind: folder, id };
  if (folder === 'server-containers') {
    const row = await db.selectFrom('containers').select('client_id').where('id', '=', id).executeTakeFirst();
    return row === undefined ? null : { kind: 'clients', id: row.client_id };
  }
  const table = folder === 'webhooks' ? 'webhooks' : 'service_tokens';
  const row = await db
    .selectFrom(table)
    .select(['client_id', 'organisation_id'])
    .where('id', '=', id)
    .executeTakeFirst();
  return row === undefined ? null : tenantOf(row);
}
