import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { limit } from '../../base/limit.ts';
import { demandContainer } from '../access/containers.ts';
import { isOperator } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { creationHeaders } from '../http/creation-headers.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { isDryRun } from '../view/plan.ts';
import {
  type BulkItem,
  type BulkOutcome,
  bulkAnswer,
  bulkQuery,
  bulkRequest,
  endpointOf,
  MOST_ITEMS,
} from './bulk.schema.ts';

interface Sending {
  readonly app: Pick<FastifyInstance, 'inject'>;
  readonly request: FastifyRequest;
  readonly key: string | null;
}

/** Containers that are changed at the same time: their commits are pushed together. */
const AT_ONCE = 8;

/** Several changes of containers in one request. Each is judged, answered and audited like a request of its own. */
export function bulkRoutes(context: Pick<Context, 'db' | 'settings'>): FastifyPluginAsyncZod {
  return async (app) => {
    app.post(
      '/bulk',
      {
        config: {
          access: 'edit',
          operators: true,
          repeatable: {
            // Each item is judged by itself.
            demand: async () => undefined,
            stored: withoutTokens,
            seen: async (answer, request) =>
              await readable(context, bulkAnswer.parse(answer), callerOf(request)),
          },
        },
        schema: {
          operationId: 'changeContainers',
          summary: `Change up to ${MOST_ITEMS} containers; an item that is refused doesn’t stop the others`,
          description:
            'Items of one container are done in their order. Each item counts as a request for rate limits, and has a line of its own in the audit log. `clone` and the rotations make something new each time; repeating the other verbs is harmless. With an `Idempotency-Key`, a repetition gets the first outcomes and changes nothing. If the whole request failed, a repetition does the items again, but makes no clone twice.',
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
              for (const item of group) {
                const key = keyOf(request, items.indexOf(item));
                outcomes.set(item, await outcomeOf({ app, request, key }, item));
              }
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

/** Members of a container's view that hold forwarder tokens. */
const SECRETS: readonly string[] = ['forwarderToken', 'snippets'];

function withoutTokens(answer: unknown): unknown {
  return JSON.parse(JSON.stringify(answer, (key, value) => (SECRETS.includes(key) ? undefined : value)));
}

/** The outcomes, without the answers about containers that the caller may not read any more. */
async function readable(
  { db, settings }: Pick<Context, 'db' | 'settings'>,
  { items, ...sums }: z.output<typeof bulkAnswer>,
  caller: Actor,
): Promise<z.output<typeof bulkAnswer>> {
  const isReadable = async ({ id, answer }: BulkOutcome) => {
    // The answer of a clone is about another container.
    const about = z.object({ id: z.uuid() }).safeParse(answer).data?.id ?? id;
    if (isOperator({ settings }, caller)) return true;
    return await demandContainer(db, about, caller, 'read').then(
      () => true,
      (error: unknown) => {
        if (error instanceof ManagementProblem) return false;
        throw error;
      },
    );
  };
  const seen = items.map(async (item) => ((await isReadable(item)) ? item : { ...item, answer: null }));
  return { ...sums, items: await Promise.all(seen) };
}

/** What identifies the caller: a token, or a session with its proof that the request is the page's own. */
const CREDENTIALS = ['authorization', 'cookie', 'x-csrf-token', 'sec-fetch-site'] as const;

function credentialsOf({ headers, sessionId }: FastifyRequest): Record<string, string> {
  const given = CREDENTIALS.flatMap((name) => {
    const value = headers[name];
    // With a session, the API has set `authorization` from the cookie. It refuses this value from a client.
    if (typeof value !== 'string' || (name === 'authorization' && sessionId !== null)) return [];
    return [[name, value] as const];
  });
  return Object.fromEntries(given);
}

/** The verbs whose endpoint needs a body, if only `{}`: an item may omit it. */
const OPTIONAL_BODIES: ReadonlySet<BulkItem['verb']> = new Set([
  'suspend',
  'rotateLoaderToken',
  'rotateForwarderToken',
]);

/** The key of one item, so that a repetition of the whole request creates nothing twice. `null`: it has none. */
function keyOf({ headers }: FastifyRequest, index: number): string | null {
  const { 'idempotency-key': key } = headers;
  return typeof key === 'string' ? `bulk-${hash('sha256', `${key} ${index}`)}` : null;
}

/** Sends an item through the endpoint of its verb, as the caller. */
async function outcomeOf(
  { app, request, key }: Sending,
  { verb, id, body, ifMatch, plan, ...place }: BulkItem,
): Promise<BulkOutcome> {
  const { query, ip } = request;
  const endpoint = endpointOf(verb);
  const { method } = endpoint;
  const payload = body ?? (OPTIONAL_BODIES.has(verb) ? {} : undefined);
  const url = new URL(`/server-containers/${id}${endpoint.path(place)}`, 'http://localhost');
  if (isDryRun(query)) url.searchParams.set('dryRun', '1');
  const answer = await app.inject({
    method,
    url: `${url.pathname}${url.search}`,
    remoteAddress: ip,
    headers: {
      ...credentialsOf(request),
      ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
      ...(plan === undefined ? {} : { 'x-tagyard-plan': plan }),
      ...(endpoint.isCreation === true && key !== null ? { 'idempotency-key': key } : {}),
    },
    ...(payload === undefined ? {} : { payload }),
  });
  const done = answer.statusCode < 400;
  return { verb, id, status: answer.statusCode, done, answer: JSON.parse(answer.body) };
}
