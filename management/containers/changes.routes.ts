import type { FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { type ContainerView, containerParams, containerView } from '../view/container-view.ts';
import { presentContainer } from '../view/present.ts';
import { type ContainerChange, changeContainer, type Projector } from './change.service.ts';
import {
  changeHeaders,
  containerPatch,
  domainQuery,
  newCustomDomain,
  newDomain,
  newLoaderToken,
} from './containers.schema.ts';
import { newToken } from './draft.ts';
import {
  addDomain,
  patch,
  removeDomain,
  rotateLoaderToken,
  withCustomDomain,
  withoutCustomDomain,
} from './edits.ts';

const GRACE_DAYS = 30;

/** Changes of a live container, each a commit in the caller's name. */
export function changesRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const tags = ['containers'];
  const refusals = [
    'invalid_request',
    'forbidden',
    'unknown_container',
    'container_busy',
    'wrong_status',
    'manifest_broken',
    'projection_failed',
    'sites_repo_unavailable',
  ] as const;

  /** Reads the container after the commit, so that a later GET has the same answer. */
  async function change(
    request: FastifyRequest,
    what: Pick<ContainerChange, 'id' | 'subject' | 'edit' | 'claims' | 'ifMatch'>,
  ): Promise<ContainerView> {
    const row = await changeContainer(context, projection, {
      ...what,
      caller: callerOf(request),
      requestId: request.id,
    });
    return presentContainer(row, context.settings);
  }

  return async (app) => {
    app.patch(
      '/server-containers/:id',
      {
        schema: {
          operationId: 'changeContainer',
          summary: 'Change name, features, modules or image',
          tags,
          params: containerParams,
          headers: changeHeaders,
          body: containerPatch,
          response: { 200: containerView, ...problems(...refusals, 'precondition_failed') },
        },
      },
      (request) =>
        change(request, {
          id: request.params.id,
          subject: 'Change',
          ifMatch: request.headers['if-match'],
          edit: (current) => patch(current, request.body),
        }),
    );

    app.post(
      '/server-containers/:id/domains',
      {
        schema: {
          operationId: 'addDomain',
          summary: 'Add a domain whose pages carry the loader, or change its web tag id',
          tags,
          params: containerParams,
          body: newDomain,
          response: { 200: containerView, ...problems(...refusals, 'domain_in_use') },
        },
      },
      (request) => {
        const { domain, webTagId } = request.body;
        return change(request, {
          id: request.params.id,
          subject: `Add domain ${domain} to`,
          claims: [domain],
          edit: (current) => addDomain(current, domain, webTagId),
        });
      },
    );

    app.delete(
      '/server-containers/:id/domains',
      {
        schema: {
          operationId: 'removeDomain',
          summary: 'Remove a domain',
          tags,
          params: containerParams,
          querystring: domainQuery,
          response: {
            200: containerView,
            ...problems(...refusals, 'unknown_domain', 'last_domain', 'foreign_domain'),
          },
        },
      },
      (request) => {
        const { domain } = request.query;
        return change(request, {
          id: request.params.id,
          subject: `Remove domain ${domain} from`,
          edit: (current) => removeDomain(current, domain),
        });
      },
    );

    app.post(
      '/server-containers/:id/custom-domains',
      {
        schema: {
          operationId: 'addCustomDomain',
          summary: 'Add a first-party host that serves the tags',
          tags,
          params: containerParams,
          body: newCustomDomain,
          response: { 200: containerView, ...problems(...refusals, 'domain_in_use', 'foreign_domain') },
        },
      },
      (request) => {
        const { domain } = request.body;
        return change(request, {
          id: request.params.id,
          subject: `Add custom domain ${domain} to`,
          claims: [domain],
          edit: (current) => withCustomDomain(current, domain),
        });
      },
    );

    app.delete(
      '/server-containers/:id/custom-domains',
      {
        schema: {
          operationId: 'removeCustomDomain',
          summary: 'Remove a first-party host',
          tags,
          params: containerParams,
          querystring: domainQuery,
          response: { 200: containerView, ...problems(...refusals, 'unknown_domain') },
        },
      },
      (request) => {
        const { domain } = request.query;
        return change(request, {
          id: request.params.id,
          subject: `Remove custom domain ${domain} from`,
          edit: (current) => withoutCustomDomain(current, domain),
        });
      },
    );

    app.post(
      '/server-containers/:id/loader-token',
      {
        schema: {
          operationId: 'rotateLoaderToken',
          summary: 'Make a new loader token; the old one is accepted until the grace date',
          tags,
          params: containerParams,
          body: newLoaderToken,
          response: { 200: containerView, ...problems(...refusals) },
        },
      },
      (request) => {
        const token = newToken('lt');
        const until = request.body.graceUntil ?? dateAfter(context.clock.date().getTime(), GRACE_DAYS);
        return change(request, {
          id: request.params.id,
          subject: 'Rotate the loader token of',
          edit: (current) => rotateLoaderToken(current, token, until),
        });
      },
    );
  };
}

/** The UTC date `days` days after `nowMs`. */
function dateAfter(nowMs: number, days: number): string {
  return new Date(nowMs + days * 86_400_000).toISOString().slice(0, 10);
}
