import { randomUUID } from 'node:crypto';
import { setInterval } from 'node:timers/promises';
import { type ParsedManifest, parseManifest } from '../../gitops/manifest/load.ts';
import type { Manifest } from '../../gitops/manifest/schema.ts';
import type { SiteBlob, SiteFile } from '../../gitops/sites-repo/sites-repo.ts';
import { insertContainer, isAnyObstructed, setReason } from '../records/containers.repository.ts';
import type { Cause } from '../records/events.repository.ts';
import { LIVE, PROJECTION_REASONS } from '../lifecycle/status.ts';
import { type Context, withoutConfig } from '../context/context.ts';
import { UNSETTLED } from '../lifecycle/steps.ts';
import { hasOverdueClaims, settleOverdueClaims } from '../records/claims.repository.ts';
import { follow, type KnownSite, refuse, remove, restore } from './project-site.ts';
import { rememberBlob } from '../records/sites.repository.ts';

/** How often sites that wait for others' ports or names are looked at again, milliseconds. */
const RETRY_MS = 2_000;

/**
 * Makes the database say what git says: an operator's edits, reverts and deletions as much as the API's own. Level-
 * triggered: a pass compares the newest revision with what was projected last. Passes queue, and each reads the
 * newest revision itself, so that an older one never overwrites a newer one.
 */
export class Projection {
  readonly #context: Context;
  readonly #onOperation: () => void;
  #tail: Promise<void> = Promise.resolve();

  constructor(context: Context, onOperation: () => void) {
    this.#context = context;
    this.#onOperation = onOperation;
  }

  /** Resolves when the database has caught up with the revision that is newest now. */
  async run(): Promise<void> {
    const turn = this.#tail.then(() => this.#pass());
    this.#tail = turn.catch(() => undefined);
    await turn;
  }

  /** Follows the repository until the signal. */
  async follow(signal: AbortSignal): Promise<void> {
    const { repo, log } = this.#context;
    // An abort ends the waiting by throwing.
    const retrying = this.#retryObstructed(signal).catch((err) => {
      if (!signal.aborted) log.error({ err }, 'sites that wait for others can’t be looked at any more');
    });
    const unwatched = (err: unknown) =>
      log.warn({ err }, 'the sites repository can’t be watched; it is only looked at now and then');
    for await (const revision of repo.changes(signal, unwatched)) {
      await this.run().catch((err) => log.error({ err, revision }, 'a revision could not be projected'));
    }
    await retrying;
    await this.#tail;
  }

  /** What another site held may be given up without any commit: when the host says that it is gone. */
  async #retryObstructed(signal: AbortSignal): Promise<void> {
    const { db, log } = this.#context;
    for await (const _ of setInterval(RETRY_MS, null, { signal, ref: false })) {
      try {
        if ((await isAnyObstructed(db)) || (await hasOverdueClaims(db))) await this.run();
      } catch (err) {
        log.error({ err }, 'a retry could not be projected');
      }
    }
  }

  async #pass(): Promise<void> {
    const { repo, log } = this.#context;
    const head = await repo.head();
    // No branch yet, or one that can't be read, isn't a repository from which everything was deleted.
    if (head === null) return;
    const [listed, known] = [await repo.list(head), await this.#known()];
    const due = listed.filter((blob) => {
      const site = known.get(blob.site);
      return site === undefined || isDue(site, blob);
    });
    let complete = true;
    for await (const files of repo.texts(due)) {
      for (const file of files) {
        try {
          await this.#project(known.get(file.site), file, head);
        } catch (err) {
          complete = false;
          log.error({ err, site: file.site, revision: head }, 'a site could not be projected');
        }
      }
    }
    const present = new Set(listed.map(({ site }) => site));
    for (const site of known.values()) {
      const gone = !present.has(site.siteId) && site.recorded && LIVE.includes(site.status);
      if (gone && !isUnsettled(site)) {
        await remove(this.#context, site, await this.#causeOf(site.siteId, head));
        // The very same text may come back.
        await rememberBlob(this.#context.db, site.siteId, { revision: head, blob: null });
        this.#onOperation();
      }
    }
    if (complete) await settleOverdueClaims(this.#context.db);
  }

  async #project(site: KnownSite | undefined, file: SiteFile, revision: string): Promise<void> {
    const { db } = this.#context;
    const at = { revision, blob: file.blob };
    const parsed = parseManifest(file.text, file.path);
    const absent = parsed.ok && parsed.manifest.state === 'absent';
    if (absent && (site === undefined || !LIVE.includes(site.status))) {
      // What stood in the way of a comeback doesn't matter any more.
      if (site?.status === 'removed')
        await setReason(db, site, null, null, await this.#causeOf(file.site, revision));
      return await rememberBlob(db, file.site, at);
    }
    if (site === undefined && !(parsed.ok && (await this.#isClient(parsed.manifest)))) return;
    const cause = await this.#causeOf(file.site, revision);
    const container = site ?? (await this.#adopt(file, parsed, cause));
    if (container === null) return;
    if (!parsed.ok || parsed.manifest.container !== container.id) {
      await refuse(this.#context, container, 'invalid_manifest', describe(file, parsed), at, cause);
      return;
    }
    const view = withoutConfig(parsed.manifest);
    if (absent) {
      await remove(this.#context, container, cause);
      await rememberBlob(db, file.site, at);
    } else if (LIVE.includes(container.status)) {
      await follow(this.#context, container, view, at, cause);
    } else {
      await restore(this.#context, container, view, at, cause);
    }
    this.#onOperation();
  }

  async #isClient({ site, client }: Manifest): Promise<boolean> {
    const { db, log } = this.#context;
    const known = await db.selectFrom('clients').select('id').where('id', '=', client).executeTakeFirst();
    if (known === undefined)
      log.warn({ site, client }, 'git holds a site of a client that is not known here');
    return known !== undefined;
  }

  /** A site that stands in git only: an operator's own, or one that the database has lost. */
  async #adopt(file: SiteFile, parsed: ParsedManifest, cause: Cause): Promise<KnownSite | null> {
    if (!parsed.ok) return null;
    const { manifest } = parsed;
    const view = withoutConfig(manifest);
    const row = {
      id: manifest.container,
      site_id: file.site,
      client_id: manifest.client,
      status: 'removed' as const,
      manifest: JSON.stringify(view),
      revision: cause.revision,
    };
    if (!(await insertContainer(this.#context.db, row, cause))) {
      const { site, container } = manifest;
      this.#context.log.warn({ site, container }, 'git holds a second site of one container');
      return null;
    }
    return {
      id: row.id,
      siteId: file.site,
      status: row.status,
      reason: null,
      manifest: view,
      blob: null,
      recorded: false,
      step: null,
    };
  }

  async #known(): Promise<Map<string, KnownSite>> {
    const rows = await this.#context.db
      .selectFrom('containers')
      .leftJoin('sites', 'sites.site_id', 'containers.site_id')
      .leftJoin('operations', (join) =>
        join.onRef('operations.container_id', '=', 'containers.id').on('operations.status', '=', 'running'),
      )
      .select([
        'containers.id',
        'containers.site_id as siteId',
        'containers.status',
        'containers.status_reason as reason',
        'containers.manifest',
        'sites.blob',
        'sites.site_id as record',
        'operations.step',
      ])
      .execute();
    return new Map(rows.map(({ record, ...row }) => [row.siteId, { ...row, recorded: record !== null }]));
  }

  /** Who made the commit that is being projected, from its trailers where it has them. */
  async #causeOf(site: string, head: string): Promise<Cause> {
    const [commit] = await this.#context.repo.history(site, 1, head);
    return {
      actor: commit?.trailers.Actor ?? commit?.author ?? null,
      requestId: commit?.trailers['Request-Id'] ?? randomUUID(),
      revision: commit?.revision ?? head,
    };
  }
}

function isUnsettled({ step }: KnownSite): boolean {
  return step !== null && UNSETTLED.includes(step);
}

/** New text, or text that could not be followed before: what stood in its way may be gone. */
function isDue(site: KnownSite, { blob }: SiteBlob): boolean {
  if (isUnsettled(site)) return false;
  return site.blob !== blob || (site.reason !== null && PROJECTION_REASONS.includes(site.reason));
}

function describe(file: SiteFile, parsed: ParsedManifest): string {
  if (parsed.ok) return `${file.path}: names another container than the one that this site has`;
  return parsed.problems
    .map(
      ({ path, message, line }) => `${file.path}${line === undefined ? '' : `:${line}`}: ${path} ${message}`,
    )
    .join('; ');
}
