import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify';
import { z } from 'zod';
import { demandAnyContainer, demandContainer } from './access/containers.ts';
import { isPurpose } from './access/roles.ts';
import { demandRoleIn, isOperator, type TenantRef } from './access/tenants.ts';
import type { Context } from './context/context.ts';
import { callerOf } from './http/auth.ts';
import { problems } from './http/openapi.ts';
import { demandTenantTag } from './tenants/tenant-file.ts';
import { readTenant } from './tenants/tenants.repository.ts';
import { demandMatch } from './view/etag.ts';
import { demandWebhook } from './webhooks/demand.ts';
import { demandWebhookTag } from './webhooks/present.ts';

type Parts = Pick<Context, 'db' | 'settings'>;
/**
 * Throws unless the object is the version that `If-Match` names. If the route would refuse this caller, throws that
 * problem.
 */
type Compare = (parts: Parts, request: FastifyRequest, id: string, ifMatch: string) => Promise<void>;

/** The objects with an ETag, by the address at which they are read. */
const OBJECTS: Readonly<Record<string, { readonly what: string; readonly compare: Compare }>> = {
  '/server-containers/:id': {
    what: 'the container',
    async compare({ db, settings }, request, id, ifMatch) {
      const caller = callerOf(request);
      const { access, operators } = request.routeOptions.config;
      const asOperator = operators === true && isOperator({ settings }, caller);
      const { manifest } = asOperator
        ? await demandAnyContainer(db, id)
        : await demandContainer(db, id, caller, purposeOf(access));
      demandMatch(ifMatch, manifest);
    },
  },
  '/clients/:id': {
    what: 'the client',
    compare: (parts, request, id, ifMatch) => compareTenant(parts, request, { kind: 'clients', id }, ifMatch),
  },
  '/organisations/:id': {
    what: 'the organisation',
    compare: (parts, request, id, ifMatch) =>
      compareTenant(parts, request, { kind: 'organisations', id }, ifMatch),
  },
  '/webhooks/:id': {
    what: 'the webhook',
    async compare({ db }, request, id, ifMatch) {
      demandWebhookTag(ifMatch, await demandWebhook(db, id, callerOf(request)));
    },
  },
};

const READING = ['GET', 'HEAD'];

/**
 * Adds `If-Match` to the mutations of an object with an ETag, and of what is below its address, unless they compare it
 * themselves. A change that makes a commit compares the tag again for the commit.
 */
export function registerIfMatch(api: FastifyInstance, parts: Parts): void {
  api.addHook('onRoute', (route) => {
    const found = Object.entries(OBJECTS).find(
      ([address]) => route.url === address || route.url.startsWith(`${address}/`),
    );
    if (found === undefined || [route.method].flat().every((method) => READING.includes(method))) return;
    const headers = headersOf(route);
    if ('if-match' in headers.shape) return;
    const [, { what, compare }] = found;
    const description = `\`etag\` of a GET: refused if ${what} has changed since`;
    route.schema = {
      ...route.schema,
      headers: headers.extend({ 'if-match': z.string().max(1024).optional().meta({ description }) }),
      response: { ...problems('precondition_failed'), ...Object(route.schema?.response) },
    };
    route.preHandler = [
      async (request: FastifyRequest) => {
        const { 'if-match': ifMatch } = request.headers;
        if (ifMatch === undefined) return;
        const { id } = request.params as { readonly id: string }; // as every address above has
        await compare(parts, request, id, ifMatch);
      },
      ...[route.preHandler ?? []].flat(),
    ];
  });
}

function headersOf({ schema }: RouteOptions): z.ZodObject {
  return schema?.headers instanceof z.ZodObject ? schema.headers : z.looseObject({});
}

async function compareTenant(
  parts: Parts,
  request: FastifyRequest,
  ref: TenantRef,
  ifMatch: string,
): Promise<void> {
  await demandRoleIn(parts, ref, callerOf(request), purposeOf(request.routeOptions.config.access));
  const tenant = await readTenant(parts.db, ref);
  if (tenant !== null) demandTenantTag(ifMatch, ref, tenant);
}

function purposeOf(access: FastifyRequest['routeOptions']['config']['access']) {
  return access !== undefined && isPurpose(access) ? access : 'read';
}
