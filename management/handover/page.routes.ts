import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { counted } from '../../base/text.ts';
import { hashOf } from '../access/secret-token.ts';
import type { Context } from '../context/context.ts';
import { ManagementProblem } from '../http/errors.ts';
import type { PageLimit } from '../http/limits.ts';
import type { Handovers } from './handovers.ts';
import { findLinkByHash } from './links.repository.ts';
import { pageParams, pageQuerySchema } from './links.schema.ts';
import { HANDOVER_POLICY, type HandoverView, renderEnded, renderHandover, renderTooMany } from './page.ts';
import { areComplete } from './records.ts';

/** The page of a link and its data: they need no login, only the secret in their address. */
export function handoverPageRoutes(
  context: Context,
  handovers: Handovers,
  limit: PageLimit,
): FastifyPluginAsyncZod {
  const { db, clock } = context;

  async function viewOf(
    secret: string,
    request: FastifyRequest,
    isFresh: boolean,
  ): Promise<HandoverView | null> {
    const found = await findLinkByHash(db, hashOf(secret), clock.date());
    if (found === undefined) return null;
    const records = await handovers.read(found, isFresh, request.id);
    // This read may just have stored in the link that all records are right.
    const link = (await findLinkByHash(db, hashOf(secret), clock.date())) ?? found;
    return {
      ...{ client: found.client, link, records, isComplete: areComplete(records) },
      ...{ checkedAt: clock.date(), sendsMail: handovers.sendsMail },
    };
  }

  return async (app) => {
    app.addHook('onRequest', async (_request, reply) => {
      reply.header('x-robots-tag', 'noindex, nofollow');
    });

    app.get(
      '/handover/:secret',
      { schema: { hide: true, params: pageParams, querystring: pageQuerySchema } },
      async (request, reply) => {
        const seconds = await limit(request);
        if (seconds !== null) {
          return html(reply.code(429).header('retry-after', seconds), renderTooMany(seconds));
        }
        const view = await viewOf(request.params.secret, request, request.query.check === 'now');
        return view === null ? html(reply.code(404), renderEnded()) : html(reply, renderHandover(view));
      },
    );

    app.get(
      '/handover/:secret/records',
      { schema: { hide: true, params: pageParams } },
      async (request, reply) => {
        const seconds = await limit(request);
        if (seconds !== null) {
          reply.header('retry-after', seconds);
          throw new ManagementProblem('rate_limited', {
            detail: `try again in ${counted(seconds, 'second')}`,
          });
        }
        const view = await viewOf(request.params.secret, request, true);
        if (view === null) throw new ManagementProblem('unknown_handover_link');
        const { client, records, isComplete, checkedAt, link, sendsMail } = view;
        return {
          ...{ client, complete: isComplete, completeAt: link.complete_at, checkedAt },
          ...{ expiresAt: link.expires_at, mail: sendsMail ? link.mail : 'none', records },
        };
      },
    );
  };
}

function html(reply: FastifyReply, text: string): FastifyReply {
  return reply.type('text/html; charset=utf-8').header('content-security-policy', HANDOVER_POLICY).send(text);
}
