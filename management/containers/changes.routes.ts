import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { encryptFor } from '../../sites/manifest/secrets.ts';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { type ContainerView, changeHeaders, containerParams } from '../view/container-view.ts';
import { containerEtag } from '../view/etag.ts';
import { dryRunQuery, isDryRun } from '../view/plan.ts';
import { presentContainer } from '../view/present.ts';
import { demandCertificate } from './certificate.ts';
import { type ContainerChange, changeContainer, type Projector } from './change.service.ts';
import { certificatePair, containerPatch, isOnlyImage, serviceAccountKey } from './containers.schema.ts';
import { type ContainerPlan, changeAnswer, planChange } from './dry-run.ts';
import { patch, withCertificate, withoutServiceAccount, withServiceAccount } from './edits.ts';
import { demandImage, demandResources } from './image.ts';
import { planningOf } from './planning.ts';
import { encryptAccount } from './service-account.ts';

export const GRACE_DAYS = 30;

/** The refusals of every change. */
export const REFUSALS = [
  'invalid_request',
  'forbidden',
  'unknown_container',
  'container_busy',
  'wrong_status',
  'manifest_broken',
  'precondition_failed',
  'plan_changed',
  'commit_refused',
  'projection_failed',
  'sites_repo_unavailable',
] as const;

type Change = (
  request: FastifyRequest,
  reply: FastifyReply,
  what: Omit<ContainerChange, 'caller' | 'requestId' | 'ifMatch'>,
) => Promise<ContainerView | ContainerPlan>;

/**
 * Makes the change of a request, or with `dryRun` its plan. The container in the answer is read after the commit,
 * so that a later GET has the same answer.
 */
export function changer(context: Context, projection: Projector): Change {
  const { db, settings } = context;
  return async (request, reply, what) => {
    const { 'if-match': ifMatch } = request.headers;
    const planning = await planningOf(db, request);
    const change = { ...what, ifMatch, planning, caller: callerOf(request), requestId: request.id };
    if (isDryRun(request.query)) return await planChange(context, change);
    // Compared before the change takes any name, and again for the commit.
    await planning.compare(() => planChange(context, change));
    const row = await changeContainer(context, projection, change);
    const view = presentContainer(row, settings);
    reply.header('etag', containerEtag(row.manifest, view));
    return view;
  };
}

/** Changes of a live container, each a commit in the caller's name. */
export function changesRoutes(context: Context, projection: Projector): FastifyPluginAsyncZod {
  const { settings } = context;
  const tags = ['containers'];
  const change = changer(context, projection);

  return async (app) => {
    app.patch(
      '/server-containers/:id',
      {
        config: { access: 'edit', bodyOpensTo: 'operators' },
        schema: {
          operationId: 'changeContainer',
          summary:
            'Change name, features, modules, consent, resources or the limit of bodies; operators may also change the image',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: containerPatch,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'image_not_allowed') },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Change',
          purpose: 'edit',
          // An operator may set any container's image without being a member of its client.
          asOperator: isOnlyImage(request.body) && isOperator({ settings }, callerOf(request)),
          edit: (current) => {
            demandImage(request.body.image, current.image, callerOf(request), settings);
            const changed = patch(current, request.body);
            demandResources(changed.resources, current.resources, callerOf(request), settings);
            return changed;
          },
        }),
    );

    app.put(
      '/server-containers/:id/service-account',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'setServiceAccount',
          summary: 'Give the tag server a Google Cloud service account, for BigQuery and Firestore',
          description:
            'The key is encrypted for the host, and no answer contains it. The containers are replaced by a swap.',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: serviceAccountKey,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'invalid_service_account') },
        },
      },
      async (request, reply) => {
        const account = await encryptAccount(request.body, {
          recipient: settings.ageRecipient,
          container: request.params.id,
        });
        return await change(request, reply, {
          id: request.params.id,
          subject: 'Set the service account of',
          edit: (current) => withServiceAccount(current, account),
        });
      },
    );

    app.put(
      '/server-containers/:id/certificate',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'setCertificate',
          summary: 'Upload a certificate with its key, for those names of the container that it covers',
          description:
            'The key is encrypted for the host, and no answer contains it. Other names keep the source that they have. Setting `tls` removes the pair.',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          body: certificatePair,
          response: { 200: changeAnswer, ...problems(...REFUSALS, 'invalid_certificate') },
        },
      },
      async (request, reply) => {
        const { id } = request.params;
        const { certificate, privateKey } = request.body;
        const key = await encryptFor(settings.ageRecipient, id, privateKey);
        return await change(request, reply, {
          id,
          subject: 'Set the certificate of',
          edit(current) {
            demandCertificate(current, request.body, context.clock.date().getTime());
            return withCertificate(current, { certificate, key });
          },
        });
      },
    );

    app.delete(
      '/server-containers/:id/service-account',
      {
        config: { access: 'act' },
        schema: {
          operationId: 'removeServiceAccount',
          summary: 'Remove the tag server’s service account',
          tags,
          params: containerParams,
          headers: changeHeaders,
          querystring: dryRunQuery,
          response: { 200: changeAnswer, ...problems(...REFUSALS) },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Remove the service account of',
          edit: withoutServiceAccount,
        }),
    );
  };
}

/** The UTC date `days` days after `nowMs`. */
export function dateAfter(nowMs: number, days: number): string {
  return new Date(nowMs + days * 86_400_000).toISOString().slice(0, 10);
}
