import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { meaningOf } from '../../gitops/report/report.ts';
import { faultsIn } from '../../gitops/report/site-condition.ts';
import { ProvisionerError, type ProvisionerSite } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { hostDetail } from '../lifecycle/host-detail.ts';
import { type Health, LIVE } from '../lifecycle/status.ts';
import {
  type ContainerRow,
  type HostObstacle,
  lockContainer,
  setHealth,
} from '../records/containers.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';

interface HealthVerdict {
  readonly health: Health;
  /** What keeps the host from applying or repairing what git says; `null`: nothing. */
  readonly obstacle: HostObstacle | null;
}

/** A container's health by its site's status on the host; `null`: the status says nothing about it. */
export function judgeHealth({ reason, message, health, conditions }: ProvisionerSite): HealthVerdict | null {
  const meaning = meaningOf(reason);
  if (meaning === 'changing' || meaning === 'gone') return null;
  const faults = faultsIn(conditions);
  if (faults.length > 0) {
    const detail = faults.map((fault) => hostDetail(fault.condition, fault.message)).join('; ');
    return { health: 'degraded', obstacle: { reason: 'host_trouble', detail } };
  }
  const detail = hostDetail(reason, message);
  switch (meaning) {
    case 'well':
      return { health: health === 'degraded' ? 'degraded' : 'healthy', obstacle: null };
    // It isn't ready, because changes wait: that is as it was asked for.
    case 'suspended':
      return { health: 'healthy', obstacle: { reason: 'suspended', detail: message } };
    case 'refused':
      return { health: 'healthy', obstacle: { reason: 'host_refused', detail } };
    case 'trouble':
      return { health: 'degraded', obstacle: { reason: 'host_trouble', detail } };
  }
}

/** Whether a verdict differs from what is known of a container. */
export function isHealthChange(
  row: Pick<ContainerRow, 'health' | 'host_reason' | 'host_detail'>,
  { health, obstacle }: HealthVerdict,
): boolean {
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  return health !== row.health || row.host_reason !== reason || row.host_detail !== detail;
}

type Watched = Pick<Context, 'db' | 'provisioner' | 'room' | 'settings' | 'log'>;

/**
 * Shows on each container what happens to it on its host. Level-triggered: each check compares everything that the
 * provisioner reports with the database, so that a restart of provisioner or management loses nothing.
 */
export class HostWatch {
  readonly #context: Watched;
  /**
   * The provisioner's last detail of each container, and its redacted text for the client. Cached, because a redaction
   * reads much of the database.
   */
  readonly #redacted = new Map<string, { readonly detail: string; readonly shown: string }>();

  constructor(context: Watched) {
    this.#context = context;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, settings } = this.#context;
    while (!signal.aborted) {
      try {
        await this.check();
      } catch (err) {
        // While the provisioner is unreachable, the containers keep showing the last known health.
        if (err instanceof ProvisionerError)
          log.debug({ err }, 'the provisioner’s site statuses can’t be read');
        else log.error({ err }, 'the health of the sites could not be recorded');
      }
      await pause(settings.watchMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Compares and records everything once. */
  async check(): Promise<void> {
    const { db, provisioner, room, settings } = this.#context;
    const report = await provisioner.report({ requestId: 'host-watch' });
    room.record(report);
    if (report.sites.length === 0) return;
    const bySite = new Map(report.sites.map((status) => [status.site, status]));
    const rows = await db
      .selectFrom('containers')
      .select(['id', 'site_id', 'health', 'host_reason', 'host_detail'])
      .where('status', 'in', LIVE)
      .where(sql<string>`manifest->>'host'`, '=', settings.host)
      .execute();
    for (const row of rows) {
      const status = bySite.get(row.site_id);
      const verdict = status === undefined ? null : judgeHealth(status);
      if (verdict === null) continue;
      const shown = await this.#redact(row.id, verdict);
      if (isHealthChange(row, shown)) await this.#record(row.id, shown);
    }
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#redacted.keys()) if (!ids.has(id)) this.#redacted.delete(id);
  }

  /** The verdict without names of other clients' sites. */
  async #redact(id: string, { health, obstacle }: HealthVerdict): Promise<HealthVerdict> {
    if (obstacle === null) return { health, obstacle };
    const { detail } = obstacle;
    const known = this.#redacted.get(id);
    const shown =
      known?.detail === detail ? known.shown : await withoutForeignNames(this.#context.db, id, detail);
    this.#redacted.set(id, { detail, shown });
    return { health, obstacle: { ...obstacle, detail: shown } };
  }

  async #record(id: string, verdict: HealthVerdict): Promise<void> {
    await this.#context.db.transaction().execute(async (trx) => {
      const row = await lockContainer(trx, id);
      if (!LIVE.includes(row.status) || !isHealthChange(row, verdict)) return;
      await setHealth(trx, row, verdict);
    });
  }
}
