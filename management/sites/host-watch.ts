import { sql } from 'kysely';
import { type ContainerRow, lockContainer, setHealth } from '../records/containers.repository.ts';
import { type Health, LIVE } from '../lifecycle/status.ts';
import type { Context } from '../context/context.ts';
import { ProvisionerError, type ProvisionerSite } from '../clients/provisioner-client.ts';

/** On the way to where git wants it, or on nobody's way at all: no word about the host. */
const SILENT: readonly string[] = ['Progressing', 'Removing', 'Removed', 'InvalidManifest'];
const WELL: readonly string[] = ['Ready', 'Suspended'];

interface Verdict {
  readonly health: Health;
  /** `null`: nothing is wrong. */
  readonly trouble: string | null;
}

/** What the provisioner's word on a site means for its container; `null`: it says nothing new yet. */
export function judgeHealth({ reason, message, health }: ProvisionerSite): Verdict | null {
  if (SILENT.includes(reason)) return null;
  if (WELL.includes(reason)) return { health: health === 'degraded' ? 'degraded' : 'healthy', trouble: null };
  return { health: 'degraded', trouble: message === '' ? reason : `${reason}: ${message}` };
}

/**
 * Shows on a container what happens to it on its host after it came up. Level-triggered: each look compares all that
 * the provisioner says with all that the database says, so that a restart of either loses nothing.
 */
export class HostWatch {
  readonly #context: Pick<Context, 'db' | 'provisioner' | 'settings' | 'log'>;

  constructor(context: Pick<Context, 'db' | 'provisioner' | 'settings' | 'log'>) {
    this.#context = context;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, settings } = this.#context;
    while (!signal.aborted) {
      try {
        await this.look();
      } catch (err) {
        // A provisioner that is away changes nothing of what was last known.
        if (err instanceof ProvisionerError)
          log.debug({ err }, 'the provisioner can’t be asked about its sites');
        else log.error({ err }, 'the host’s state could not be taken over');
      }
      await pause(settings.watchMs, signal);
    }
  }

  /** One comparison of everything. */
  async look(): Promise<void> {
    const { db, provisioner, settings } = this.#context;
    const sites = new Map(
      (await provisioner.sites({ requestId: 'host-watch' })).map((one) => [one.site, one]),
    );
    if (sites.size === 0) return;
    const rows = await db
      .selectFrom('containers')
      .select(['id', 'site_id', 'health', 'status_reason', 'status_detail'])
      .where('status', 'in', LIVE)
      .where(sql<string>`manifest->>'host'`, '=', settings.host)
      .execute();
    for (const row of rows) {
      const said = sites.get(row.site_id);
      const verdict = said === undefined ? null : judgeHealth(said);
      if (verdict === null) continue;
      if (isNews(row, verdict)) await this.#show(row.id, verdict);
    }
  }

  async #show(id: string, verdict: Verdict): Promise<void> {
    await this.#context.db.transaction().execute(async (trx) => {
      const row = await lockContainer(trx, id);
      if (!LIVE.includes(row.status) || !isNews(row, verdict)) return;
      await setHealth(trx, row, verdict.health, verdict.trouble);
    });
  }
}

/** Another reason than the host's stays where it is, and what the host says is then shown by the health alone. */
function isNews(
  row: Pick<ContainerRow, 'health' | 'status_reason' | 'status_detail'>,
  { health, trouble }: Verdict,
): boolean {
  if (health !== row.health) return true;
  if (row.status_reason === null) return trouble !== null;
  return row.status_reason === 'host_trouble' && row.status_detail !== trouble;
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  signal.addEventListener('abort', () => resolve(), { once: true });
  if (!signal.aborted) await promise;
  clearTimeout(timer);
}
