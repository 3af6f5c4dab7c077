import type { FastifyReply } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { counted } from '../../base/text.ts';
import { registrableDomain } from '../../sites/manifest/schema.ts';
import { demandContainer } from '../access/containers.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { checkProof } from '../proof/check.ts';
import type { ContainerWithOperation } from '../records/containers.repository.ts';
import { containerParams } from '../view/container-view.ts';
import { paged } from '../view/page.ts';
import { dryRunQuery, isDryRun, planAnswer } from '../view/plan.ts';
import type { AskedHosts } from './asked-hosts.ts';
import {
  customDomainList,
  customDomainView,
  domainStateParams,
  domainStateView,
} from './domain-states.schema.ts';
import { DomainStates } from './domain-states.ts';

const LIST_QUERY = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(255).optional().meta({ description: '`next` of the previous page' }),
});
const REFUSALS = ['invalid_request', 'unknown_container', 'unknown_domain'] as const;

interface Asked {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
}

/** A container's custom domains and the domains of its pages, each with what DNS, the host and the proof say of it. */
export function domainStatesRoutes(
  context: Context,
  projection: { run(): Promise<unknown> },
  hosts: AskedHosts,
): FastifyPluginAsyncZod {
  const { db, settings } = context;
  const tags = ['domains'];
  const states = new DomainStates(context, hosts);

  /** Makes the next answers ask the resolvers about the container's names again, and checks the proof of `name` now. */
  async function recheck(row: ContainerWithOperation, name: string, reply: FastifyReply): Promise<void> {
    const { manifest } = row;
    const { origin, edge } = manifest.hostnames;
    const names = [origin, edge, ...manifest.customDomains, ...manifest.domains.map(({ domain }) => domain)];
    const seconds = hosts.forget(name, names);
    if (seconds !== null) {
      reply.header('retry-after', seconds);
      throw new ManagementProblem('rate_limited', {
        detail: `${name} was checked just now; try again in ${counted(seconds, 'second')}`,
      });
    }
    if (settings.domainProof === 'off') return;
    const domain = registrableDomain(name) ?? name;
    await checkProof(context, { client: row.client_id, domain }, reply.request.id);
    // The check may have made commits: the answer shows what they say.
    await projection.run();
  }

  async function customDomain({ id, caller, requestId }: Asked, domain: string) {
    const row = await demandContainer(db, id, caller, 'read');
    demandCustomDomain(row, domain);
    const [state] = await states.customDomains(row, [domain], requestId);
    if (state === undefined) throw new ManagementProblem('unknown_domain');
    return state;
  }

  async function pageDomain({ id, caller }: Asked, domain: string) {
    const row = await demandContainer(db, id, caller, 'read');
    return await states.domain(row, demandPage(row, domain));
  }

  return async (app) => {
    app.get(
      '/server-containers/:id/custom-domains',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'listCustomDomains',
          summary: 'List the first-party hosts of a container, with the records to set and their states',
          tags,
          params: containerParams,
          querystring: LIST_QUERY,
          response: { 200: customDomainList, ...problems('invalid_request', 'unknown_container') },
        },
      },
      async (request) => {
        const { limit, cursor = '' } = request.query;
        const row = await demandContainer(db, request.params.id, callerOf(request), 'read');
        const all = [...row.manifest.customDomains].sort().filter((domain) => domain > cursor);
        const { items, next } = paged(all, limit, (domain) => domain);
        return { items: await states.customDomains(row, items, request.id), next };
      },
    );

    app.get(
      '/server-containers/:id/custom-domains/:domain',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'getCustomDomain',
          summary: 'Read the records and states of one first-party host',
          description: 'The answers of the resolvers are at most a minute old.',
          tags,
          params: domainStateParams,
          response: { 200: customDomainView, ...problems(...REFUSALS) },
        },
      },
      async (request) => await customDomain(askedBy(request), request.params.domain),
    );

    app.post(
      '/server-containers/:id/custom-domains/:domain/check',
      {
        config: { access: 'edit' },
        schema: {
          operationId: 'checkCustomDomain',
          summary: 'Ask the resolvers about a first-party host and its proof now',
          description: 'At most once in ten seconds. A dry run checks only whether the request is allowed.',
          tags,
          params: domainStateParams,
          querystring: dryRunQuery,
          response: {
            200: z.union([customDomainView, planAnswer]),
            ...problems(...REFUSALS, 'forbidden', 'rate_limited'),
          },
        },
      },
      async (request, reply) => {
        const { id, domain } = request.params;
        const row = await demandContainer(db, id, callerOf(request), 'edit');
        demandCustomDomain(row, domain);
        if (isDryRun(request.query)) return { plan: { changes: [] } };
        await recheck(row, domain, reply);
        return await customDomain(askedBy(request), domain);
      },
    );

    app.get(
      '/server-containers/:id/domains/:domain',
      {
        config: { access: 'read' },
        schema: {
          operationId: 'getDomain',
          summary: 'Read the proof and the states of a domain whose pages have the snippet',
          description: 'The answers of the resolvers are at most a minute old.',
          tags,
          params: domainStateParams,
          response: { 200: domainStateView, ...problems(...REFUSALS) },
        },
      },
      async (request) => await pageDomain(askedBy(request), request.params.domain),
    );

    app.post(
      '/server-containers/:id/domains/:domain/check',
      {
        config: { access: 'edit' },
        schema: {
          operationId: 'checkDomain',
          summary: 'Ask the resolvers about a domain and its proof now',
          description: 'At most once in ten seconds. A dry run checks only whether the request is allowed.',
          tags,
          params: domainStateParams,
          querystring: dryRunQuery,
          response: {
            200: z.union([domainStateView, planAnswer]),
            ...problems(...REFUSALS, 'forbidden', 'rate_limited'),
          },
        },
      },
      async (request, reply) => {
        const { id, domain } = request.params;
        const row = await demandContainer(db, id, callerOf(request), 'edit');
        demandPage(row, domain);
        if (isDryRun(request.query)) return { plan: { changes: [] } };
        await recheck(row, domain, reply);
        return await pageDomain(askedBy(request), domain);
      },
    );
  };
}

function askedBy(
  request: Parameters<typeof callerOf>[0] & { readonly params: { readonly id: string } },
): Asked {
  return { id: request.params.id, caller: callerOf(request), requestId: request.id };
}

function demandCustomDomain({ manifest }: ContainerWithOperation, domain: string): void {
  if (!manifest.customDomains.includes(domain)) throw new ManagementProblem('unknown_domain');
}

function demandPage({ manifest }: ContainerWithOperation, domain: string) {
  const page = manifest.domains.find((one) => one.domain === domain);
  if (page === undefined) throw new ManagementProblem('unknown_domain');
  return page;
}
