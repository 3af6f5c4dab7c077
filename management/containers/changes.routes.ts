import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import type { Context } from '../context/context.ts';
import { callerOf } from '../http/auth.ts';
import { problems } from '../http/openapi.ts';
import { type ContainerView, changeHeaders, containerParams, containerView } from '../view/container-view.ts';
import { containerEtag } from '../view/etag.ts';
import { presentContainer } from '../view/present.ts';
import { type ContainerChange, changeContainer, type Projector } from './change.service.ts';
import { containerPatch, isOnlyImage, newLoaderToken, serviceAccountKey } from './containers.schema.ts';
import { newToken } from './draft.ts';
import { patch, rotateLoaderToken, withoutServiceAccount, withServiceAccount } from './edits.ts';
import { demandImage } from './image.ts';
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
  'projection_failed',
  'sites_repo_unavailable',
] as const;

type Change = (
  request: FastifyRequest,
  reply: FastifyReply,
  what: Pick<ContainerChange, 'id' | 'subject' | 'edit' | 'claims' | 'asOperator'>,
) => Promise<ContainerView>;

/** Makes the change of a request. It reads the container after the commit, so that a later GET has the same answer. */
export function changer(context: Context, projection: Projector): Change {
  const { settings } = context;
  return async (request, reply, what) => {
    const { 'if-match': ifMatch } = request.headers;
    const row = await changeContainer(context, projection, {
      ...what,
      ifMatch,
      caller: callerOf(request),
      requestId: request.id,
    });
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
        schema: {
          operationId: 'changeContainer',
          summary: 'Change name, features or modules; operators may also change the image',
          tags,
          params: containerParams,
          headers: changeHeaders,
          body: containerPatch,
          response: { 200: containerView, ...problems(...REFUSALS, 'image_not_allowed') },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Change',
          // An operator may set the image of any container without a membership.
          asOperator: isOnlyImage(request.body) && settings.superAdmins.includes(callerOf(request).subject),
          edit: (current) => {
            demandImage(request.body.image, current.image, callerOf(request), settings);
            return patch(current, request.body);
          },
        }),
    );

    app.put(
      '/server-containers/:id/service-account',
      {
        schema: {
          operationId: 'setServiceAccount',
          summary: 'Give the tag server a Google Cloud service account, for BigQuery and Firestore',
          description:
            'The key is encrypted for the host and never answered. The containers are replaced by a swap.',
          tags,
          params: containerParams,
          headers: changeHeaders,
          body: serviceAccountKey,
          response: { 200: containerView, ...problems(...REFUSALS, 'invalid_service_account') },
        },
      },
      async (request, reply) => {
        const account = await encryptAccount(request.body, settings.ageRecipient);
        return await change(request, reply, {
          id: request.params.id,
          subject: 'Set the service account of',
          edit: (current) => withServiceAccount(current, account),
        });
      },
    );

    app.delete(
      '/server-containers/:id/service-account',
      {
        schema: {
          operationId: 'removeServiceAccount',
          summary: 'Remove the tag server’s service account',
          tags,
          params: containerParams,
          headers: changeHeaders,
          response: { 200: containerView, ...problems(...REFUSALS) },
        },
      },
      (request, reply) =>
        change(request, reply, {
          id: request.params.id,
          subject: 'Remove the service account of',
          edit: withoutServiceAccount,
        }),
    );

    app.post(
      '/server-containers/:id/loader-token',
      {
        schema: {
          operationId: 'rotateLoaderToken',
          summary: 'Make a new loader token; the old one is accepted until the grace date',
          tags,
          params: containerParams,
          headers: changeHeaders,
          body: newLoaderToken,
          response: { 200: containerView, ...problems(...REFUSALS, 'too_many_loader_tokens') },
        },
      },
      (request, reply) => {
        const token = newToken('lt');
        const now = context.clock.date().getTime();
        const until = request.body.graceUntil ?? dateAfter(now, GRACE_DAYS);
        return change(request, reply, {
          id: request.params.id,
          subject: 'Rotate the loader token of',
          edit: (current) => rotateLoaderToken(current, { token, until, today: dateAfter(now, 0) }),
        });
      },
    );
  };
}

/** The UTC date `days` days after `nowMs`. */
export function dateAfter(nowMs: number, days: number): string {
  return new Date(nowMs + days * 86_400_000).toISOString().slice(0, 10);
}
