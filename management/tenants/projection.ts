import type { SiteBlob } from '../../sites/repo/listing.ts';
import type { TenantRef } from '../access/tenants.ts';
import type { Context } from '../context/context.ts';
import { endLeftBehind } from '../records/left-behind.repository.ts';
import { formatTenant, parseTenant, tenantName } from './tenant-file.ts';
import { lockTenant, projectedBlobs, readTenant, storeTenant } from './tenants.repository.ts';

type Parts = Pick<Context, 'db' | 'repo' | 'log' | 'settings'>;

/** Files that are written at once, with a commit each. */
const MOST_WRITES = 200;

/** Clients and organisations as git has them, projected into the database. */
export class TenantProjection {
  readonly #parts: Parts;
  /** By name, the last problem that was logged, so that each is logged once. */
  readonly #reported = new Map<string, string>();
  /** The revision that was projected last without a failure. */
  #projected: string | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Brings the database to a revision or a newer one. Clients and organisations that only the database has are written
   * to git first: they predate such files. A file that is missing or can't be read changes nothing. Never throws:
   * what failed is logged, and tried again at the next call.
   */
  async run(revision: string | null): Promise<void> {
    if (revision !== null && revision === this.#projected) return;
    try {
      await this.#run(revision);
    } catch (err) {
      this.#parts.log.error({ err }, 'clients and organisations could not be projected; it is tried again');
    }
  }

  /** The next run compares all of them again: the database may be another one. */
  forget(): void {
    this.#projected = null;
  }

  async #run(revision: string | null): Promise<void> {
    const { db, repo } = this.#parts;
    const projected = await projectedBlobs(db);
    let head = revision;
    let listed = await this.#list(head);
    const unwritten = [...projected].filter(([name, blob]) => blob === null && !listed.has(name));
    if (unwritten.length > 0) {
      for (let start = 0; start < unwritten.length; start += MOST_WRITES) {
        await Promise.all(unwritten.slice(start, start + MOST_WRITES).map(([name]) => this.#write(name)));
      }
      head = await repo.head();
      listed = await this.#list(head);
    }
    if (head === null) return;
    const changed = [...listed.values()].filter(({ site, blob }) => projected.get(site) !== blob);
    // Organisations first, because clients refer to them.
    let isComplete = true;
    for (const { site } of changed.toSorted((a, b) => (a.site > b.site ? -1 : 1))) {
      await this.apply(refOf(site)).catch((err: unknown) => {
        isComplete = false;
        this.#report(site, err instanceof Error ? err.message : String(err));
      });
    }
    for (const [name, blob] of projected) {
      if (blob === null || listed.has(name)) continue;
      this.#report(name, 'its file is missing in git, so nothing was changed: restore the file');
    }
    if (isComplete) this.#projected = head;
  }

  /** Brings one client or organisation to the newest revision. Throws if its file can't be read or applied. */
  async apply(ref: TenantRef): Promise<void> {
    const { db, repo, settings, log } = this.#parts;
    const name = tenantName(ref);
    await db.transaction().execute(async (trx) => {
      const blob = await lockTenant(trx, ref);
      // Read under the lock: another process may have applied a newer version meanwhile.
      const head = await repo.head();
      const file = head === null ? null : await repo.readSite(head, name);
      if (file === null) throw new Error(`${name}.yaml is missing in git`);
      if (file.blob === blob) return;
      const parsed = parseTenant(file.text, ref);
      if (!parsed.ok) throw new Error(`${name}.yaml: ${parsed.problem}`);
      const { organisation } = parsed.tenant;
      if (organisation !== null) {
        const known = await readTenant(trx, { kind: 'organisations', id: organisation });
        if (known === null) throw new Error(`${name}.yaml: needs a valid organisations/${organisation}.yaml`);
      }
      await storeTenant(trx, ref, parsed.tenant, file.blob);
      const ended = await endLeftBehind(trx, ref, settings.superAdmins);
      if (Object.values(ended).some((list) => list.length > 0)) {
        log.info(
          { file: `${name}.yaml`, ended },
          'what was made by someone who is no owner or admin any more has ended',
        );
      }
    });
    this.#reported.delete(name);
  }

  async #list(revision: string | null): Promise<ReadonlyMap<string, SiteBlob>> {
    const files = revision === null ? [] : await this.#parts.repo.tenants(revision);
    return new Map(files.map((file) => [file.site, file]));
  }

  async #write(name: string): Promise<void> {
    const { db, repo } = this.#parts;
    const ref = refOf(name);
    const tenant = await readTenant(db, ref);
    if (tenant === null) return;
    await repo.commit({
      site: name,
      subject: `Keep ${name} in git`,
      author: { name: 'Tagyard', email: 'tagyard@localhost' },
      trailers: { Reason: 'written from the database' },
      edit: (current) => current ?? formatTenant(ref, tenant),
    });
  }

  #report(name: string, problem: string): void {
    if (this.#reported.get(name) === problem) return;
    this.#reported.set(name, problem);
    this.#parts.log.warn(
      { file: `${name}.yaml` },
      `a client or organisation could not be projected: ${problem}`,
    );
  }
}

/** The tenant whose file has this name. */
function refOf(name: string): TenantRef {
  const [folder, id = ''] = name.split('/');
  return { kind: folder === 'clients' ? 'clients' : 'organisations', id };
}
