import { randomUUID } from 'node:crypto';
import { setInterval } from 'node:timers/promises';
import { backoffMs } from '../../base/backoff.ts';
import { limit } from '../../base/limit.ts';
import { readManifest } from '../../sites/manifest/read.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { SiteFile } from '../../sites/repo/files.ts';
import { HistoryIndex } from '../../sites/repo/history-index.ts';
import type { Context } from '../context/context.ts';
import { withoutSecrets } from '../db/manifest-view.ts';
import { hasOverdueClaims, settleOverdueClaims } from '../records/claims.repository.ts';
import { insertContainer, isAnyObstructed, setObstacle } from '../records/containers.repository.ts';
import type { Cause } from '../records/events.repository.ts';
import { projectedDigest, recordedSites, rememberBlob } from '../records/sites.repository.ts';
import {
  decideProjection,
  describeRefusal,
  isDeleted,
  isDue,
  type KnownSite,
  removalObstacle,
} from './decision.ts';
import { KnownAbsences } from './known-absences.ts';
import { knownSites } from './known-sites.ts';
import { applyEdit, applyRemoval, OutdatedPass, refuseVersion, startRestore } from './project-site.ts';

/** Milliseconds between two checks for sites that wait for something other than a commit. */
const RETRY_MS = 2_000;
/** The pauses between retries. */
const RETRIES = { firstMs: RETRY_MS, longestMs: 60_000 };
/** The most passes of one run. Further passes are needed if other processes project at the same time. */
const MAX_PASSES = 5;

/** Projects the clients and organisations, which sites belong to. Never throws. */
interface Tenants {
  run(revision: string | null): Promise<void>;
  /** The next run compares all of them again. */
  forget(): void;
}

/** What a pass could not project. */
interface PassOutcome {
  /** Sites whose projection threw an error. */
  readonly failed: Set<string>;
  /** Another process changed a site during the pass. */
  isOutdated: boolean;
  /** At least one site waits until its creation or the rollback of it has settled. */
  isEarly: boolean;
}

/**
 * Projects git into the database: edits, reverts and deletions by operators and by the API alike. Level-triggered: a
 * pass compares the newest revision with what was projected last. Within a process, passes run one at a time. Because
 * other processes project too, each site is compared again under its lock. An incomplete pass is repeated without
 * waiting for a commit.
 */
export class Projection {
  readonly #context: Context;
  readonly #tenants: Tenants;
  readonly #onOperation: () => void;
  readonly #mutex = limit(1);
  readonly #index: HistoryIndex;
  readonly #absences: KnownAbsences;
  /** The number of retries that have failed since the last complete run. */
  #failedRetries = 0;
  /**
   * The digest that the last run began with. Later, another one is due to that run, to another process or to an older
   * copy of the database; the next run finds out. The digest at a run's end says nothing: a copy may have come during it.
   */
  #found: string | null = null;
  /** The time of the next retry by `clock.now()`; `null`: the last pass was complete. */
  #retryAt: number | null = null;

  constructor(context: Context, tenants: Tenants, onOperation: () => void) {
    this.#context = context;
    this.#tenants = tenants;
    this.#absences = new KnownAbsences(context.repo);
    this.#onOperation = onOperation;
    this.#index = new HistoryIndex(context.repo, context.log);
  }

  /**
   * Brings the database to the newest revision at the time of the call. Resolves to the sites that could not be
   * projected; they are tried again later.
   */
  async run(): Promise<ReadonlySet<string>> {
    return await this.#mutex(() => this.#runPasses());
  }

  /** Follows the repository until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    const { repo, log } = this.#context;
    // An abort of the signal makes the timer throw.
    const retrying = this.#retry(signal).catch((err) => {
      if (!signal.aborted) log.error({ err }, 'sites that wait are no longer checked; restart the process');
    });
    const onUnwatched = (err: unknown) =>
      log.warn({ err }, 'the sites repository can’t be watched; it is polled instead');
    for await (const revision of repo.changes(signal, onUnwatched)) {
      // The repository may be new: the tenants that only the database has are written to it.
      if (revision === null) await this.#tenants.run(null);
      if (revision === null) continue;
      await this.run().catch((err) => log.error({ err, revision }, 'a revision could not be projected'));
    }
    await retrying;
    // Waits until the passes that requests have started have ended.
    await this.#mutex(async () => undefined);
  }

  /**
   * Obstacles and causes of failures can disappear without a commit, for example when the host reports that another
   * site is gone. And the database can be replaced by an older copy of it. So this checks regularly whether another run
   * is due.
   */
  async #retry(signal: AbortSignal): Promise<void> {
    const { db, clock, log } = this.#context;
    for await (const _ of setInterval(RETRY_MS, null, { signal, ref: false })) {
      try {
        const isDueAgain = this.#retryAt !== null && this.#retryAt <= clock.now();
        // Only retries lengthen the pause: commits and requests, however many, must not delay the next retry.
        if (isDueAgain) this.#failedRetries += 1;
        if (isDueAgain) this.#retryAt = null;
        if (
          isDueAgain ||
          this.#found !== (await projectedDigest(db)) ||
          (await isAnyObstructed(db)) ||
          (await hasOverdueClaims(db))
        )
          await this.run();
      } catch (err) {
        log.error({ err }, 'a retry of the projection failed');
      }
    }
  }

  async #runPasses(): Promise<ReadonlySet<string>> {
    const { db, clock } = this.#context;
    try {
      const found = await projectedDigest(db);
      if (found !== this.#found) this.#tenants.forget();
      this.#found = found;
      let outcome = await this.#pass();
      for (let pass = 1; outcome.isOutdated && pass < MAX_PASSES; pass += 1) outcome = await this.#pass();
      if (outcome.failed.size > 0) this.#scheduleRetry();
      else {
        this.#failedRetries = 0;
        this.#retryAt = outcome.isEarly || outcome.isOutdated ? clock.now() : null;
      }
      return outcome.failed;
    } catch (error) {
      this.#scheduleRetry();
      throw error;
    }
  }

  #scheduleRetry(): void {
    this.#retryAt ??= this.#context.clock.now() + backoffMs(this.#failedRetries + 1, Math.random, RETRIES);
  }

  async #pass(): Promise<PassOutcome> {
    const { db, repo } = this.#context;
    const outcome: PassOutcome = { failed: new Set(), isOutdated: false, isEarly: false };
    // Must be read before git: if a recorded site has no file in the later listing, its file was deleted.
    const recorded = await recordedSites(db);
    const head = await repo.head();
    await this.#tenants.run(head);
    // An unreadable branch doesn't mean that every site was deleted.
    if (head === null) return outcome;
    const { files: listed } = await repo.tree(head);
    this.#index.update(listed.length);
    const known = await knownSites(db);
    const due = listed.filter((blob) => {
      const verdict = isDue(known.get(blob.site), blob);
      if (verdict === 'later') outcome.isEarly = true;
      return verdict === true;
    });
    for await (const files of repo.texts(due)) {
      for (const file of files) {
        await this.#attempt(outcome, file.site, () => this.#project(known.get(file.site), file, head));
      }
    }
    const present = new Set(listed.map(({ site }) => site));
    const missing = [...known.values()].filter(
      (site) => !present.has(site.siteId) && recorded.has(site.siteId) && isDeleted(site),
    );
    // Never start a removal from an outdated listing: git may have the site again.
    if (missing.length > 0 && (await repo.head()) !== head) outcome.isOutdated = true;
    else await this.#projectMissing(missing, head, outcome);
    if (outcome.failed.size === 0 && !outcome.isOutdated) await settleOverdueClaims(db);
    return outcome;
  }

  /** Removes sites whose file a commit removed. A moved or replaced file, or a rewritten branch, is no removal. */
  async #projectMissing(
    missing: readonly KnownSite[],
    revision: string,
    outcome: PassOutcome,
  ): Promise<void> {
    const { db } = this.#context;
    // No blob is recorded, so that the site is projected again even if git restores the same text.
    const at = { revision, blob: null };
    const absences = await this.#absences.at(
      revision,
      missing.map(({ siteId }) => siteId),
    );
    for (const site of missing) {
      const detail = removalObstacle(site.siteId, absences.get(site.siteId));
      const isKnown = site.reason === 'invalid_manifest' && site.detail === detail;
      if (detail !== null && isKnown) continue;
      await this.#attempt(outcome, site.siteId, async () => {
        const cause = await this.#causeOf(site.siteId, revision);
        if (detail === null) await applyRemoval({ db }, site, at, cause);
        else await refuseVersion({ db }, { site, at, cause }, { reason: 'invalid_manifest', detail });
        this.#onOperation();
      });
    }
  }

  /** Projects one site, and catches its failure, so that the other sites are still projected. */
  async #attempt(outcome: PassOutcome, site: string, project: () => Promise<void>): Promise<void> {
    try {
      await project();
    } catch (err) {
      if (err instanceof OutdatedPass) {
        outcome.isOutdated = true;
        return;
      }
      outcome.failed.add(site);
      this.#context.log.error({ err, site }, 'a site could not be projected; it is tried again');
    }
  }

  async #project(known: KnownSite | undefined, file: SiteFile, revision: string): Promise<void> {
    const { db, repo, log } = this.#context;
    const at = { revision, blob: file.blob };
    const parsed = await readManifest(file.text, file.path);
    const decision = decideProjection(known, parsed);
    if (decision === 'remember') {
      // A removed site that git has brought back waits to be restored; a tombstone ends that.
      if (known?.status === 'removed')
        await setObstacle(db, known, null, await this.#causeOf(file.site, revision));
      return await rememberBlob(db, file.site, at);
    }
    if (decision === 'ignore') return;
    if (decision === 'adopt' && !(parsed.ok && (await this.#hasClient(parsed.manifest)))) return;
    const cause = await this.#causeOf(file.site, revision);
    const site = known ?? (parsed.ok ? await this.#adopt(file, parsed.manifest, cause) : null);
    if (site === null) return;
    if (decision === 'refuse' || !parsed.ok) {
      const detail = describeRefusal(file.path, parsed);
      return await refuseVersion({ db }, { site, at, cause }, { reason: 'invalid_manifest', detail });
    }
    for (const { path, message } of parsed.warnings) {
      log.warn({ site: file.site, path }, `a manifest is accepted as it is: ${path} ${message}`);
    }
    const { client } = parsed.manifest;
    if (client !== site.manifest.client && !(await this.#hasClient(parsed.manifest))) {
      const detail = `${file.path}: git has no clients/${client}.yaml`;
      return await refuseVersion({ db }, { site, at, cause }, { reason: 'invalid_manifest', detail });
    }
    const version = { site, manifest: withoutSecrets(parsed.manifest), at, cause };
    if (decision === 'remove') {
      await applyRemoval({ db }, site, at, cause);
    } else if (decision === 'edit') await applyEdit({ db }, version);
    // Never restore from an outdated listing: the creation may have failed since, and its file may have been withdrawn.
    else if ((await repo.head()) !== revision) throw new OutdatedPass(file.site);
    else await startRestore({ db }, version);
    this.#onOperation();
  }

  async #hasClient({ site, client }: Manifest): Promise<boolean> {
    const { db, log } = this.#context;
    const known = await db.selectFrom('clients').select('id').where('id', '=', client).executeTakeFirst();
    if (known === undefined) log.warn({ site, client }, 'git holds a site of an unknown client');
    return known !== undefined;
  }

  /** Creates the record of a site that only git has: an operator created it, or the database was lost. */
  async #adopt({ site }: SiteFile, manifest: Manifest, cause: Cause): Promise<KnownSite | null> {
    const { db, log } = this.#context;
    const { container } = manifest;
    const view = withoutSecrets(manifest);
    const row = {
      id: container,
      site_id: site,
      client_id: manifest.client,
      status: 'removed' as const,
      manifest: view,
      revision: cause.revision,
    };
    if (!(await insertContainer(db, row, cause))) {
      log.warn({ site, container }, 'git holds a second site of one container');
      return null;
    }
    const fresh = {
      status: row.status,
      reason: null,
      detail: null,
      revision: null,
      blob: null,
      isRecorded: false,
      step: null,
    };
    return { id: container, siteId: site, manifest: view, ...fresh };
  }

  /** The cause of a projected commit: from its trailers, or else from its author. */
  async #causeOf(site: string, head: string): Promise<Cause> {
    const [commit] = await this.#context.repo.history(site, 1, head);
    return {
      actor: commit?.trailers.Actor ?? commit?.author ?? null,
      requestId: commit?.trailers['Request-Id'] ?? randomUUID(),
      revision: commit?.revision ?? head,
    };
  }
}
