import type { FastifyPluginAsyncZod } from 'fastify-type-provider-zod';
import { isRenewalLate } from '../../edge/verification/certificate-life.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { callerOf } from '../http/auth.ts';
import { ManagementProblem } from '../http/errors.ts';
import { problems } from '../http/openapi.ts';
import { type Ending, endingProofs, endingTokens, visibleSites } from './ending.repository.ts';
import { endingList, endingQuery } from './instance.schema.ts';
import { instanceOf } from './provisioner.ts';

const DAY_MS = 86_400_000;
const MOST = 200;

/** What ends soon of the containers that the caller may read, so that it is renewed in time. */
export function endingRoutes(context: Context): FastifyPluginAsyncZod {
  const { db, clock } = context;

  /** `null`: the provisioner, which has the certificates, doesn't answer. */
  async function endingCertificates(caller: Actor, to: Date, requestId: string): Promise<Ending[] | null> {
    try {
      const all = await instanceOf(context, requestId).certificates();
      const soon = all.filter(
        (one) => new Date(one.notAfter) <= to && isRenewalLate(one, clock.date().getTime()),
      );
      const containers = await visibleSites(
        db,
        caller,
        soon.map(({ site }) => site),
      );
      return soon.flatMap(({ site, key, notAfter }) => {
        const container = containers.get(site);
        if (container === undefined) return [];
        const at = new Date(notAfter).toISOString();
        return [{ kind: 'certificate', at, subject: key, containerId: container.id, name: container.name }];
      });
    } catch (error) {
      if (error instanceof ManagementProblem && error.code === 'host_unavailable') return null;
      throw error;
    }
  }

  return async (app) => {
    app.get(
      '/ending',
      {
        config: { access: 'self' },
        schema: {
          operationId: 'listEnding',
          summary: 'List what ends within some days: certificates, proofs of domains, old tokens',
          tags: ['containers'],
          querystring: endingQuery,
          response: { 200: endingList, ...problems('invalid_request') },
        },
      },
      async (request) => {
        const caller = callerOf(request);
        const from = clock.date();
        const to = new Date(from.getTime() + request.query.days * DAY_MS);
        const within = { caller, from, to, most: MOST };
        const [certificates, proofs, tokens] = await Promise.all([
          endingCertificates(caller, to, request.id),
          endingProofs(db, within),
          endingTokens(db, within),
        ]);
        const items = [...(certificates ?? []), ...proofs, ...tokens]
          .sort((a, b) => a.at.localeCompare(b.at) || a.name.localeCompare(b.name))
          .slice(0, MOST);
        return { asOf: from.toISOString(), hostAnswers: certificates !== null, items, next: null };
      },
    );
  };
}
