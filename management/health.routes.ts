import type { FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import { withinTime } from '../base/time-limit.ts';
import type { Context } from './context/context.ts';

/** A check that takes longer counts as failed. */
const DEADLINE_MS = 2_000;

/**
 * `/healthz`: the process answers. `/readyz`: database and sites repository answer too; the log names what doesn't.
 * `/readyz` names the service, so that another one at the address isn't taken for it.
 */
export function registerHealth(
  app: FastifyInstance,
  { db, repo, log }: Pick<Context, 'db' | 'repo' | 'log'>,
): void {
  const options = { schema: { hide: true }, config: { polled: true } };
  app.get('/healthz', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async (_request, reply) => {
    const checks = { database: () => sql`select 1`.execute(db), sitesRepo: () => repo.head() };
    const results = await Promise.all(
      Object.entries(checks).map(async ([name, check]) => {
        try {
          await withinTime<unknown>(DEADLINE_MS, check);
          return [name, true] as const;
        } catch (err) {
          log.warn({ err, check: name }, 'not ready');
          return [name, false] as const;
        }
      }),
    );
    const ready = results.every(([, ok]) => ok);
    return reply
      .status(ready ? 200 : 503)
      .send({ service: 'management', status: ready ? 'ready' : 'not_ready', ...Object.fromEntries(results) });
  });
}
