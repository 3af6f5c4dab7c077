import { randomUUID } from 'node:crypto';
import { replaceHidden } from '../../base/text.ts';
import type { ShownSite } from '../../gitops/report/report.ts';
import { IMAGE_SUBJECT } from '../../gitops/report/rollout.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { isOperator } from '../access/tenants.ts';
import { changeContainer, type Projector } from '../containers/change.service.ts';
import type { Context } from '../context/context.ts';
import { TriggeredLoop } from '../context/repeat.ts';
import { type ManagementErrorCode, ManagementProblem } from '../http/errors.ts';
import { instanceOf } from '../instance/provisioner.ts';
import { ROLLOUT_REASONS, type RolloutReason } from '../lifecycle/rollout.ts';
import { findContainer } from '../records/containers.repository.ts';
import { conditionOf, startOfSite, watched } from './judge.ts';
import {
  failSite,
  leaseRollout,
  moveRollout,
  moveSite,
  type RolloutRow,
  type RolloutSite,
  releaseRollouts,
  rolloutSites,
  startWave,
  type WaveStart,
} from './rollouts.repository.ts';
import { nextWave } from './waves.ts';

/** Interval of the checks while no rollout runs here: a process may have ended without finishing its rollout. */
const IDLE_MS = 5_000;
/** A rollout is polled this many times less often than an operation: each poll asks the host for each changing site. */
const POLL_FACTOR = 4;
/** A site must be ready within this time after its change. A swap takes less, even on a busy host. */
const READY_MS = 30 * 60_000;
/** The most characters of a detail that are kept. */
const LONGEST_DETAIL = 1_000;

/** Refusals of a change that end without anyone's action: the change is tried again. */
const PASSING: readonly ManagementErrorCode[] = [
  'container_busy',
  'projection_failed',
  'sites_repo_unavailable',
];

/**
 * Runs the active image rollout wave by wave, in the background. All state is in the database, so that another process
 * can continue; only one process at a time has the rollout.
 */
export class RolloutRunner {
  readonly #context: Context;
  readonly #projection: Projector;
  readonly #process = randomUUID();
  readonly #loop: TriggeredLoop;

  constructor(context: Context, projection: Projector) {
    this.#context = context;
    this.#loop = new TriggeredLoop(context.clock);
    this.#projection = projection;
  }

  /** Makes the runner check at once, because a rollout was started or changed. */
  trigger(): void {
    this.#loop.trigger();
  }

  /** Runs until the signal. Resolves when no step is running any more, and another process may continue. */
  async run(signal: AbortSignal): Promise<void> {
    const { db, log, settings } = this.#context;
    await this.#loop.run(signal, async () => {
      const isActive = await this.#poll(signal).catch((err: unknown) => {
        log.error({ err }, 'an image rollout could not be continued; it is tried again');
        return false;
      });
      return isActive ? settings.followMs * POLL_FACTOR : IDLE_MS;
    });
    await releaseRollouts(db, this.#process).catch((err: unknown) =>
      log.warn(
        { err },
        'the lease of the image rollout could not be released; another process can continue after some seconds',
      ),
    );
  }

  /** Resolves to whether this process has a rollout that isn't at its end. */
  async #poll(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      const rollout = await leaseRollout(this.#context.db, this.#process);
      if (rollout === null) return false;
      if (!(await this.#advance(rollout))) return true;
    }
    return true;
  }

  /** `true`: the next step can follow at once. */
  async #advance(rollout: RolloutRow): Promise<boolean> {
    const sites = await rolloutSites(this.#context.db, rollout.id);
    const moving = sites.filter(({ state }) => state === 'changing' || state === 'reverting');
    if (moving.length > 0) {
      const results = await Promise.allSettled(moving.map((site) => this.#follow(rollout, site)));
      const failed = results.find((result) => result.status === 'rejected');
      if (failed !== undefined) throw failed.reason;
      return results.every((result) => result.status === 'fulfilled' && result.value);
    }
    if (rollout.status === 'running') return await this.#nextWave(rollout, sites);
    await this.#end(rollout, sites);
    return true;
  }

  async #nextWave(rollout: RolloutRow, sites: readonly RolloutSite[]): Promise<boolean> {
    const { db, clock, log } = this.#context;
    const { id, actor } = rollout;
    const batch = nextWave(sites, rollout.waves);
    if (batch.length === 0) {
      await moveRollout(db, id, ['running'], { status: 'succeeded' });
      return true;
    }
    if (!isOperator(this.#context, actor)) {
      await moveRollout(db, id, ['running'], { status: 'failed', reason: 'not_operator' });
      return true;
    }
    const wave = sites.filter(({ site_id }) => batch.includes(site_id));
    const starts = await Promise.all(wave.map((site) => this.#start(rollout, site)));
    const hasBegun = await startWave(db, id, starts, clock.date());
    if (hasBegun) log.info({ rollout: id, image: rollout.image, sites: batch }, 'a wave of a rollout begins');
    return hasBegun;
  }

  async #start(rollout: RolloutRow, { site_id, container_id }: RolloutSite): Promise<WaveStart> {
    const { db, repo } = this.#context;
    const row = await findContainer(db, container_id);
    if (row === undefined) throw new Error(`container ${container_id} is missing`);
    const shown = await this.#shown(rollout, site_id);
    const history = await repo.history(site_id, 1);
    const { status, manifest } = row;
    const start = startOfSite({ site: site_id, status, manifest, shown, history }, rollout.image);
    return { ...start, detail: start.detail && kept(start.detail) };
  }

  /** `null`: the host doesn't know the site. */
  async #shown({ request_id }: RolloutRow, site: string): Promise<ShownSite | null> {
    try {
      return await instanceOf(this.#context, request_id).site(site);
    } catch (error) {
      if (error instanceof ManagementProblem && error.code === 'unknown_container') return null;
      throw error;
    }
  }

  /** One step of a site that changes. `true`: it has ended, or must be committed again. */
  async #follow(rollout: RolloutRow, site: RolloutSite): Promise<boolean> {
    if (site.revision === null) return await this.#change(rollout, site);
    return await this.#watch(rollout, site);
  }

  async #change(rollout: RolloutRow, site: RolloutSite): Promise<boolean> {
    const { db, repo, log } = this.#context;
    try {
      await changeContainer(this.#context, this.#projection, {
        id: site.container_id,
        caller: rollout.actor,
        requestId: rollout.request_id,
        subject: IMAGE_SUBJECT,
        reason: `image rollout ${rollout.id}${site.state === 'reverting' ? ', way back' : ''}`,
        asOperator: true,
        edit: (current) => withImage(current, rollout.image, site),
      });
    } catch (error) {
      if (!(error instanceof ManagementProblem)) throw error;
      const { code, message } = error;
      if (code === 'revert_conflict') return await this.#skip(site, 'changed_since', message);
      if (!PASSING.includes(code)) return await this.#fail(rollout, site, 'change_refused', message);
      log.warn({ err: error, site: site.site_id }, 'the image can’t be changed now; it is tried again');
      return await this.#failIfLate(rollout, site, message);
    }
    // The newest commit of the site, also where another process has made it.
    const [newest] = await repo.history(site.site_id, 1);
    if (newest === undefined) throw new Error(`git has no commit of ${site.site_id}`);
    await moveSite(db, site, { revision: newest.revision });
    return false;
  }

  async #watch(rollout: RolloutRow, site: RolloutSite): Promise<boolean> {
    const { db, clock } = this.#context;
    const isBack = site.state === 'reverting';
    const row = await findContainer(db, site.container_id);
    if (row?.manifest.image !== wantedImage(rollout.image, site)) {
      // A slow process may have committed the rollout's image after the commit of the way back.
      if (isBack && row?.manifest.image === rollout.image) return await this.#again(site);
      if (isBack) return await this.#skip(site, 'changed_since', null);
      return await this.#fail(rollout, site, 'changed_since', null);
    }
    const shown = await this.#shown(rollout, site.site_id);
    const condition =
      shown === null
        ? 'pending'
        : watched({
            shown,
            isAttempted: await this.#contains(shown.attempted, site.revision),
            isApplied: await this.#contains(shown.applied, site.revision),
          });
    if (shown !== null && condition === 'failed') {
      return await this.#fail(rollout, site, 'host_failed', conditionOf(shown));
    }
    if (condition === 'pending') {
      await moveSite(db, site, { well_since: null });
      return await this.#failIfLate(rollout, site, shown === null ? null : conditionOf(shown));
    }
    const now = clock.date();
    const wellSince = site.well_since ?? now;
    const watchMs = isBack ? 0 : rollout.watch_seconds * 1_000;
    const isDone = now.getTime() - wellSince.getTime() >= watchMs;
    const done = { state: isBack ? 'reverted' : 'swapped', reason: null, detail: null } as const;
    await moveSite(db, site, { well_since: wellSince, ...(isDone ? done : {}) });
    return isDone;
  }

  /** Whether a revision that the host names contains a commit. */
  async #contains(revision: string | null, commit: string | null): Promise<boolean> {
    if (revision === null || commit === null) return false;
    return revision === commit || (await this.#context.repo.isAncestor(commit, revision));
  }

  async #again(site: RolloutSite): Promise<boolean> {
    await moveSite(this.#context.db, site, { revision: null, well_since: null });
    return true;
  }

  async #skip(site: RolloutSite, reason: RolloutReason, detail: string | null): Promise<boolean> {
    await moveSite(this.#context.db, site, { state: 'skipped', reason, detail: detail && kept(detail) });
    return true;
  }

  async #failIfLate(rollout: RolloutRow, site: RolloutSite, detail: string | null): Promise<boolean> {
    const ageMs = this.#context.clock.date().getTime() - (site.since?.getTime() ?? 0);
    return ageMs > READY_MS && (await this.#fail(rollout, site, 'timed_out', detail));
  }

  /** The first failure stops the rollout. On the way back, the other sites continue. */
  async #fail(
    rollout: RolloutRow,
    site: RolloutSite,
    reason: RolloutReason,
    detail: string | null,
  ): Promise<boolean> {
    const { db, log } = this.#context;
    const why = [ROLLOUT_REASONS[reason], ...(detail === null ? [] : [detail])].join(': ');
    const failure = { reason, detail: detail && kept(detail) };
    if (await failSite(db, site, failure, kept(`${site.site_id}: ${why}`))) {
      log.warn(
        { rollout: rollout.id, site: site.site_id, reason, detail },
        'a site of an image rollout failed',
      );
    }
    return true;
  }

  async #end({ id, status, reason }: RolloutRow, sites: readonly RolloutSite[]): Promise<void> {
    const { db } = this.#context;
    if (status === 'stopping') {
      await moveRollout(db, id, [status], { status: reason === null ? 'stopped' : 'failed' });
      return;
    }
    const failed = sites.filter(({ state }) => state === 'failed').map(({ site_id }) => site_id);
    const end =
      failed.length === 0
        ? { status: 'reverted' as const }
        : {
            status: 'failed' as const,
            reason: 'site_failed' as const,
            detail: kept(`not reverted: ${failed.join(', ')}`),
          };
    await moveRollout(db, id, [status], end);
  }
}

/** The image that a changing site is to have. */
function wantedImage(image: string, { state, from_image }: RolloutSite): string | null {
  return state === 'reverting' ? from_image : image;
}

/** On the way back, throws `revert_conflict` where someone else has changed the image since. */
function withImage(current: Manifest, image: string, site: RolloutSite): Manifest {
  const wanted = wantedImage(image, site);
  if (wanted === null || current.image === wanted) return current;
  if (site.state === 'reverting' && current.image !== image) {
    throw new ManagementProblem('revert_conflict', { detail: `the site has the image ${current.image} now` });
  }
  return { ...current, image: wanted };
}

/** A detail as it can be stored: the host may quote a log whose characters the database refuses. */
function kept(text: string): string {
  return replaceHidden(text).slice(0, LONGEST_DETAIL).toWellFormed();
}
