import { sql } from 'kysely';
import type { PolicyRefusal } from '../../gitops/report/container-logs.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { LIVE } from '../lifecycle/status.ts';
import { addEvent } from '../records/events.repository.ts';
import type { HostLogs } from './host-logs.ts';

type Watched = Pick<Context, 'db' | 'clock' | 'settings' | 'log'>;

/**
 * Until the signal: records each refusal of a policy script as an event, and deletes on the host the lines whose
 * deletion was requested. Both are repeated until they are done, so that a restart of either side loses nothing.
 */
export async function watchHostLogs(context: Watched, host: HostLogs, signal: AbortSignal): Promise<void> {
  const { clock, settings, log } = context;
  while (!signal.aborted) {
    for (const work of [recordRefusals, deleteDemanded]) {
      try {
        await work(context, host);
      } catch (err) {
        if (err instanceof ProvisionerError)
          log.debug({ err }, 'the containers’ lines on the host can’t be reached');
        else log.error({ err }, 'lines of containers could not be processed');
      }
    }
    await clock.sleep(settings.watchMs, { signal, ref: false });
  }
}

/** One event a day for each container, template and permission. */
async function recordRefusals({ db, settings }: Watched, host: HostLogs): Promise<void> {
  const refusals = await host.refusals();
  if (refusals.length === 0) return;
  const containers = await db
    .selectFrom('containers')
    .select(['id', 'site_id', 'status'])
    .where('site_id', 'in', [...new Set(refusals.map(({ site }) => site))])
    .where('status', 'in', LIVE)
    .where(sql<string>`manifest->>'host'`, '=', settings.host)
    .execute();
  await db.transaction().execute(async (trx) => {
    // Two processes must not both find that an event is missing.
    await sql`select pg_advisory_xact_lock(hashtext('tagyard policy refusals'))`.execute(trx);
    for (const { id, site_id, status } of containers) {
      const own = refusals.filter(({ site }) => site === site_id);
      const known = await trx
        .selectFrom('container_events')
        .select('detail')
        .where('container_id', '=', id)
        .where('kind', '=', 'policy')
        .where('at', '>', sql<Date>`now() - interval '30 days'`)
        .execute();
      const details = new Set(known.map(({ detail }) => detail));
      for (const refusal of own) {
        const detail = detailOf(refusal);
        if (details.has(detail)) continue;
        details.add(detail);
        const cause = { reason: null, actor: null, request_id: null, revision: null };
        await addEvent(trx, { container_id: id, kind: 'policy', status, detail, ...cause });
      }
    }
  });
}

function detailOf({ permission, name, day }: PolicyRefusal): string {
  return `the policy script refused ${permission} to ${name ?? 'a template'} on ${day}`;
}

/** `DELETE …/traffic` also deletes what the containers have printed. */
async function deleteDemanded({ db, clock, log }: Watched, host: HostLogs): Promise<void> {
  const demanded = await db
    .selectFrom('traffic_deletions')
    .innerJoin('containers', 'containers.id', 'traffic_deletions.container')
    .select(['traffic_deletions.container', 'traffic_deletions.until', 'containers.site_id'])
    .where('traffic_deletions.logs_deleted_at', 'is', null)
    .execute();
  for (const { container, until, site_id } of demanded) {
    await host.deleteUntil(site_id, until);
    await db
      .updateTable('traffic_deletions')
      .set({ logs_deleted_at: clock.date() })
      .where('container', '=', container)
      .where('until', '=', until)
      .execute();
    log.info({ container }, 'the lines of a container were deleted');
  }
}
