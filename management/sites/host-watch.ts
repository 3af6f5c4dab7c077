import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import { troubleOf } from '../../gitops/report/host-state.ts';
import { meaningOf, refusalIn } from '../../gitops/report/report.ts';
import { ProvisionerError, type ProvisionerSite } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import { hostDetail } from '../lifecycle/host-detail.ts';
import { LIVE, WATCHED } from '../lifecycle/status.ts';
import { isUnsettled } from '../lifecycle/steps.ts';
import {
  type ContainerRow,
  type HostVerdict,
  lockContainer,
  setVerdict,
} from '../records/containers.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';
import { runningStep } from '../records/operations.repository.ts';
import { removeLocked } from '../records/removal.ts';

/** What a site's status on its host says of its container; `null`: nothing new. */
export function verdictOf(status: ProvisionerSite): HostVerdict | null {
  const { reason, message } = status;
  const { heldRemoval } = status;
  const refusal = heldRemoval ?? refusalIn(status);
  const meaning = meaningOf(reason);
  if (meaning === 'changing' || meaning === 'gone') return null;
  const trouble = troubleOf(status, hostDetail);
  if (trouble !== null) {
    const { detail, isPartial } = trouble;
    return { obstacle: { reason: isPartial ? 'host_partial' : 'host_trouble', detail }, refusal };
  }
  const waits = { reason: 'suspended', detail: message } as const;
  const why = heldRemoval === undefined ? 'host_refused' : 'removal_held';
  const refused = refusal === null ? null : ({ reason: why, detail: refusal } as const);
  // Changes that wait are as it was asked for.
  return { obstacle: meaning === 'suspended' ? waits : refused, refusal };
}

/** The same of a container that is being removed: it matters only what holds the removal. */
function verdictOnRemoval(status: ProvisionerSite): HostVerdict {
  const held = status.heldRemoval === undefined ? null : verdictOf(status);
  return held ?? { obstacle: null, refusal: null };
}

/** Begins what is said of a host that doesn't report; the time follows. */
const SILENCE = 'its host has reported nothing since ';

type Shown = Pick<ContainerRow, 'host_reason' | 'host_detail' | 'host_refusal'>;

/** What is said while the host reports nothing: a fault that is known stays, and nothing else counts as known. */
function silentVerdict({ host_reason, host_detail, host_refusal }: Shown, since: Date): HostVerdict {
  const isFault = host_reason === 'host_trouble' || host_reason === 'host_partial';
  const detail = `${isFault ? `${host_detail}; ` : ''}${SILENCE}${since.toISOString()}`;
  const reason = host_reason === 'host_trouble' ? host_reason : 'host_silent';
  return { obstacle: { reason, detail }, refusal: host_refusal };
}

/** What is left of that once the host reports again, and nothing new of the site; `null`: it wasn't silent. */
function heardVerdict({ host_reason, host_detail, host_refusal }: Shown): HostVerdict | null {
  const [before, since] = host_detail?.split(SILENCE) ?? [];
  if (before === undefined || since === undefined) return null;
  const fault = { reason: 'host_trouble', detail: before.replace(/; $/, '') } as const;
  return { obstacle: host_reason === 'host_trouble' ? fault : null, refusal: host_refusal };
}

/** Whether a verdict differs from what is known of a container. */
export function isChange(row: Shown, { obstacle, refusal }: HostVerdict): boolean {
  const { reason, detail } = obstacle ?? { reason: null, detail: null };
  return row.host_reason !== reason || row.host_detail !== detail || row.host_refusal !== refusal;
}

/** Git has no file of a live site, and the projection refuses to take that for its removal. */
const IS_MISSING = sql<boolean>`(containers.status = any (${[...LIVE]}::text[])
  and containers.status_reason = 'invalid_manifest' and sites.site_id is not null and sites.blob is null)`;

type Watched = Pick<Context, 'db' | 'provisioner' | 'room' | 'settings' | 'log' | 'clock'>;

/**
 * Shows on each container what happens to it on its host. Level-triggered: each check compares everything that the
 * provisioner reports with the database, so that a restart of provisioner or management loses nothing.
 */
export class HostWatch {
  readonly #context: Watched;
  /**
   * The provisioner's last texts of each container, and the redacted text of each for the client. Cached, because a
   * redaction reads much of the database.
   */
  readonly #redacted = new Map<string, ReadonlyMap<string, string>>();

  /** When the host reported last, or this process began to ask. */
  #reportedAt: Date;

  constructor(context: Watched) {
    this.#context = context;
    this.#reportedAt = context.clock.date();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { log, settings } = this.#context;
    while (!signal.aborted) {
      try {
        await this.check();
      } catch (err) {
        if (err instanceof ProvisionerError)
          log.debug({ err }, 'the provisioner’s site statuses can’t be read');
        else log.error({ err }, 'what the host reports of the sites could not be recorded');
      }
      await pause(settings.watchMs, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Compares and records everything once. */
  async check(): Promise<void> {
    const { provisioner, room, clock } = this.#context;
    const report = await provisioner.report({ requestId: 'host-watch' }).catch(async (err) => {
      if (err instanceof ProvisionerError) await this.#showSilence();
      throw err;
    });
    this.#reportedAt = clock.date();
    room.record(report);
    const bySite = new Map(report.sites.map((status) => [status.site, status]));
    const rows = await this.#rows();
    for (const row of rows) {
      const site = bySite.get(row.site_id);
      if (row.isMissing && (await this.#isGone(row.site_id, site))) {
        await this.#remove(row.id);
        continue;
      }
      const judge = row.status === 'deprovisioning' ? verdictOnRemoval : verdictOf;
      const verdict = (site === undefined ? null : judge(site)) ?? heardVerdict(row);
      if (verdict === null) continue;
      const shown = await this.#redact(row.id, verdict);
      if (isChange(row, shown)) await this.#record(row.id, shown);
    }
    const ids = new Set(rows.map(({ id }) => id));
    for (const id of this.#redacted.keys()) if (!ids.has(id)) this.#redacted.delete(id);
  }

  /** Shows that the host doesn't report, once it has missed two reports: a restart takes less. */
  async #showSilence(): Promise<void> {
    const { clock, settings } = this.#context;
    if (clock.date().getTime() - this.#reportedAt.getTime() < 2 * settings.watchMs) return;
    for (const row of await this.#rows()) {
      if (heardVerdict(row) === null) await this.#record(row.id, silentVerdict(row, this.#reportedAt));
    }
  }

  /** The containers of the host that it may have something of. */
  #rows() {
    const { db, settings } = this.#context;
    return db
      .selectFrom('containers')
      .leftJoin('sites', 'sites.site_id', 'containers.site_id')
      .select(['id', 'containers.site_id', 'status', 'host_reason', 'host_detail', 'host_refusal'])
      .select(IS_MISSING.as('isMissing'))
      .where('status', 'in', WATCHED)
      .where(sql<string>`manifest->>'host'`, '=', settings.host)
      .execute();
  }

  /** Whether the host removes or has removed a site, or has nothing of it. */
  async #isGone(name: string, site: ProvisionerSite | undefined): Promise<boolean> {
    if (site !== undefined) return meaningOf(site.reason) === 'gone';
    return await this.#context.provisioner.hasNothingOf(name, { requestId: 'host-watch' });
  }

  /**
   * Removes a container whose file is missing in git for a reason that git alone doesn't tell, such as a rewritten
   * branch: the host has removed the site, after an approval or because it had nothing of it.
   */
  async #remove(id: string): Promise<void> {
    await this.#context.db.transaction().execute(async (trx) => {
      await lockContainer(trx, id);
      const found = await trx
        .selectFrom('containers')
        .innerJoin('sites', 'sites.site_id', 'containers.site_id')
        .select('sites.revision')
        .where('id', '=', id)
        .where(IS_MISSING)
        .executeTakeFirst();
      if (found === undefined || isUnsettled(await runningStep(trx, id))) return;
      await removeLocked(trx, id, { actor: null, requestId: randomUUID(), revision: found.revision });
    });
  }

  /** The verdict without names of other clients' sites. */
  async #redact(id: string, { obstacle, refusal }: HostVerdict): Promise<HostVerdict> {
    const known = this.#redacted.get(id);
    const redacted = new Map<string, string>();
    const redact = async (text: string) => {
      const shown = known?.get(text) ?? (await withoutForeignNames(this.#context.db, id, text));
      redacted.set(text, shown);
      return shown;
    };
    const verdict = {
      obstacle: obstacle === null ? null : { ...obstacle, detail: await redact(obstacle.detail) },
      refusal: refusal === null ? null : await redact(refusal),
    };
    this.#redacted.set(id, redacted);
    return verdict;
  }

  async #record(id: string, verdict: HostVerdict): Promise<void> {
    await this.#context.db.transaction().execute(async (trx) => {
      const row = await lockContainer(trx, id);
      if (!WATCHED.includes(row.status) || !isChange(row, verdict)) return;
      await setVerdict(trx, row, verdict);
    });
  }
}
