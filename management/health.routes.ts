import type { FastifyInstance } from 'fastify';
import { sql } from 'kysely';
import { systemClock } from '../base/clock.ts';
import { withinTime } from '../base/time-limit.ts';
import type { Context } from './context/context.ts';

/** A check of the database that takes longer counts as failed. */
const DEADLINE_MS = 2_000;

/**
 * `/healthz`: the process answers. `/readyz`: the database answers, and the last read of the sites repository has
 * succeeded; the log names what fails. No answer waits for git: each starts the read whose outcome the next one shows.
 * `/readyz` names the service, so that another one at the address isn't taken for it, and the checks of its settings that
 * have failed, so that `tagyard doctor` finds them: without details, because it needs no token.
 */
export function registerHealth(
  app: FastifyInstance,
  {
    db,
    repo,
    log,
    findings,
  }: Pick<Context, 'db' | 'repo' | 'log'> & { readonly findings: () => readonly string[] },
): void {
  const options = { schema: { hide: true }, config: { polled: true } };
  const failed = (err: unknown, check: string) => log.warn({ err, check }, 'not ready');
  let isReading = false;
  const read = async () => {
    if (isReading) return;
    isReading = true;
    await repo.head().catch((err: unknown) => failed(err, 'sitesRepo'));
    isReading = false;
  };
  app.get('/healthz', options, async () => ({ status: 'ok' }));
  app.get('/readyz', options, async (_request, reply) => {
    const last = repo.lastRead;
    void read();
    const database = await withinTime(DEADLINE_MS, () => sql`select 1`.execute(db)).then(
      () => true,
      (err: unknown) => {
        failed(err, 'database');
        return false;
      },
    );
    const sitesRepo = last !== null && last.error === null;
    const sitesRepoSeconds = last?.at == null ? null : Math.round((systemClock.now() - last.at) / 1000);
    const ready = database && sitesRepo;
    const status = ready ? 'ready' : 'not_ready';
    return reply
      .status(ready ? 200 : 503)
      .send({ service: 'management', status, database, sitesRepo, sitesRepoSeconds, findings: findings() });
  });
}
