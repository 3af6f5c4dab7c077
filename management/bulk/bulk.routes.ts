import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { limit } from '../../gitops/base/limit.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { problems } from '../http/openapi.ts';
import { isDryRun } from '../view/plan.ts';
import {
  type BulkItem,
  type BulkOutcome,
  bulkAnswer,
  bulkQuery,
  bulkRequest,
  MOST_ITEMS,
  VERBS,
} from './bulk.schema.ts';

/** Containers that are changed at the same time: their commits are pushed together. */
const AT_ONCE = 8;

/** Several changes of containers in one request. Each is judged, answered and audited like a request of its own. */
export function bulkRoutes(): FastifyPluginAsyncZod {
  return async (app) => {
    app.post(
      '/bulk',
      {
        config: { access: 'self', repeatable: true },
        schema: {
          operationId: 'changeContainers',
          summary: `Change up to ${MOST_ITEMS} containers; an item that is refused doesn’t stop the others`,
          description:
            'Items of one container are done in their order. Each item counts as a request for rate limits, and has a line of its own in the audit log. To repeat the whole request is harmless: each verb has the same effect if it is done twice. With an `Idempotency-Key`, the repetition gets the first outcomes and changes nothing.',
          tags: ['containers'],
          headers: creationHeaders,
          querystring: bulkQuery,
          body: bulkRequest,
          response: {
            200: bulkAnswer,
            ...problems(
              'invalid_request',
              'body_too_large',
              'unsupported_media_type',
              'request_in_progress',
              'idempotency_key_reused',
            ),
          },
        },
      },
      async (request) => {
        const { items } = request.body;
        const atOnce = limit(AT_ONCE);
        const outcomes = new Map<BulkItem, BulkOutcome>();
        const groups = [...Map.groupBy(items, ({ id }) => id).values()];
        await Promise.all(
          groups.map((group) =>
            atOnce(async () => {
              for (const item of group) outcomes.set(item, await outcomeOf(app, request, item));
            }),
          ),
        );
        const ordered = items.flatMap((item) => outcomes.get(item) ?? []);
        const done = ordered.filter((outcome) => outcome.done).length;
        return { items: ordered, done, refused: ordered.length - done };
      },
    );
  };
}

/** What identifies the caller: a token, or a session with its proof that the request is the page's own. */
const CREDENTIALS = ['authorization', 'cookie', 'x-csrf-token', 'sec-fetch-site'] as const;

function credentialsOf({ headers, sessionId }: FastifyRequest): Record<string, string> {
  const given = CREDENTIALS.flatMap((name) => {
    const value = headers[name];
    // A session's `authorization` is the API's own: it comes from the cookie, and is refused from a request.
    if (typeof value !== 'string' || (name === 'authorization' && sessionId !== null)) return [];
    return [[name, value] as const];
  });
  return Object.fromEntries(given);
}

/** Sends an item through the endpoint of its verb, as the caller. */
async function outcomeOf(
  app: Pick<FastifyInstance, 'inject'>,
  request: FastifyRequest,
  { verb, id, body, ifMatch }: BulkItem,
): Promise<BulkOutcome> {
  const { query, ip } = request;
  const { method, path } = VERBS[verb];
  const payload = body ?? (verb === 'suspend' ? {} : undefined);
  const answer = await app.inject({
    method,
    url: `/server-containers/${id}${path}${isDryRun(query) ? '?dryRun=1' : ''}`,
    remoteAddress: ip,
    headers: {
      ...credentialsOf(request),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
    },
    ...(payload === undefined ? {} : { payload }),
  });
  const done = answer.statusCode < 400;
  return { verb, id, status: answer.statusCode, done, answer: JSON.parse(answer.body) };
}
