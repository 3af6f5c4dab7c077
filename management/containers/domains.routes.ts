import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Context } from '../context/context.ts';
import type { ManifestView } from '../db/manifest-view.ts';
import { problems } from '../http/openapi.ts';
import { changeHeaders, containerParams } from '../view/container-view.ts';
import { dryRunQuery } from '../view/plan.ts';
import type { Projector } from './change.service.ts';
import { changer, dateAfter, GRACE_DAYS, REFUSALS } from './changes.routes.ts';
import {
  domainParams,
  domainQuery,
  newCustomDomain,
  newDomain,
  newForwarderToken,
} from './containers.schema.ts';
import { changeAnswer } from './dry-run.ts';
import { addDomain, removeDomain, withCustomDomain, withoutCustomDomain } from './edits.ts';
import { rotateForwarderToken, withSameOrigin } from './same-origin.ts';

/** Changes of a live container's domains and first-party hosts, each a commit in the caller's name. */
export function domainsRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const { settings } = context;
  const tags = ['containers'];
  const change = changer(context, projection);

  return async (app) => {
    app.post(
      '/server-containers/:id/domains',
      {
        config: { access: 'edit' },
        schema: {
          operationId: 'addDomain',
          summary: 'Add a domain whose pages carry the loader, or change its web tag id or same-origin path',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: newDomain,
          response: {
            200: changeAnswer,
            ...problems(...REFUSALS, 'domain_in_use', 'quota_reached', 'no_forwarder_key'),
          },
        },
      },
      (request, reply) => {
        const { domain, webTagId, sameOrigin } = request.body;
        return change(request, reply, {
          id: request.params.id,
          subject: (manifest) =>
            hasDomain(manifest, domain) ? `Change domain ${domain} of` : `Add domain ${domain} to`,
          claims: [domain],
          // To change a domain's options is `edit`; to add one is `act`.
          purpose: (manifest) => (hasDomain(manifest, domain) ? 'edit' : 'act'),
          edit: (current, draw) => {
            const added = addDomain(current, { domain, webTagId }, draw);
            if (sameOrigin === undefined) return added;
            return withSameOrigin(added, { domain, sameOrigin }, { key: settings.forwarderKey, draw });
          },
        });
      },
    );

    app.post(
      '/server-containers/:id/domains/:domain/forwarder-token',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'rotateForwarderToken',
          summary: 'Make a new forwarder token of a domain; the old one is accepted until its grace ends',
          tags,
          params: domainParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: newForwarderToken,
          response: {
            200: changeAnswer,
            ...problems(...REFUSALS, 'unknown_domain', 'too_many_forwarder_tokens', 'no_forwarder_key'),
          },
        },
      },
      (request, reply) => {
        const { id, domain } = request.params;
        const now = context.clock.date();
        const { graceUntil = dateAfter(now.getTime(), GRACE_DAYS) } = request.body;
        return change(request, reply, {
          id,
          subject: `Rotate the forwarder token of ${domain} of`,
          edit: (current) =>
            rotateForwarderToken(
              current,
              { domain, until: new Date(graceUntil) },
              { key: settings.forwarderKey, now },
            ),
        });
      },
    );

    app.delete(
      '/server-containers/:id/domains',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'removeDomain',
          summary: 'Remove a domain',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: domainQuery,
          response: {
            200: changeAnswer,
            ...problems(...REFUSALS, 'unknown_domain', 'last_domain', 'foreign_domain'),
          },
        },
      },
      (request, reply) => {
        const { domain } = request.query;
        return change(request, reply, {
          id: request.params.id,
          subject: `Remove domain ${domain} from`,
          edit: (current) => removeDomain(current, domain),
        });
      },
    );

    app.post(
      '/server-containers/:id/custom-domains',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'addCustomDomain',
          summary: 'Add a first-party host that serves the tags',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: newCustomDomain,
          response: {
            200: changeAnswer,
            ...problems(...REFUSALS, 'domain_in_use', 'quota_reached', 'foreign_domain'),
          },
        },
      },
      (request, reply) => {
        const { domain } = request.body;
        return change(request, reply, {
          id: request.params.id,
          subject: `Add custom domain ${domain} to`,
          claims: [domain],
          edit: (current) => withCustomDomain(current, domain),
          field: 'domain',
        });
      },
    );

    app.delete(
      '/server-containers/:id/custom-domains',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'removeCustomDomain',
          summary: 'Remove a first-party host',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: domainQuery,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'unknown_domain') },
        },
      },
      (request, reply) => {
        const { domain } = request.query;
        return change(request, reply, {
          id: request.params.id,
          subject: `Remove custom domain ${domain} from`,
          edit: (current) => withoutCustomDomain(current, domain),
        });
      },
    );
  };
}

function hasDomain({ domains }: Pick<ManifestView, 'domains'>, domain: string): boolean {
  return domains.some((known) => known.domain === domain);
}
