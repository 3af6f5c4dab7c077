import { LRUCache } from 'lru-cache';
import { readManifest } from '../../../sites/manifest/read.ts';
import type { Manifest } from '../../../sites/manifest/schema.ts';
import { SitesRepoError } from '../../../sites/repo/errors.ts';
import type { Context } from '../../context/context.ts';
import { ManagementProblem } from '../../http/errors.ts';
import { manifestChanges } from '../../view/manifest-plan.ts';
import { paged } from '../../view/page.ts';
import type { HistoryEntryView } from './history.schema.ts';

/** The manifests of a site before and after a commit. `null`: there was none. `'invalid'`: it couldn't be parsed. */
interface Versions {
  readonly before: Manifest | 'invalid' | null;
  readonly after: Manifest | 'invalid' | null;
}

/**
 * Parsed versions by file and text. They are kept, because parsing one takes milliseconds, and several pages of a
 * history need the same versions.
 */
interface Parsed {
  get(key: string): Promise<Manifest | 'invalid'> | undefined;
  set(key: string, parsed: Promise<Manifest | 'invalid'>): unknown;
}
const MOST_PARSED = 500;
const recent: Parsed = new LRUCache<string, Promise<Manifest | 'invalid'>>({ max: MOST_PARSED });

/** The commits that changed a site, newest first; with `cursor`, those older than the commit that it names. */
export async function readHistory(
  { repo }: Pick<Context, 'repo'>,
  site: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Promise<{ history: HistoryEntryView[]; next: string | null }> {
  return await fromGit(async () => {
    if (cursor !== undefined && !(await repo.has(cursor))) throw new ManagementProblem('unknown_commit');
    const newest = cursor ?? (await repo.head());
    if (newest === null) return { history: [], next: null };
    // From a cursor, the history begins with the cursor's commit itself, which the previous page has.
    const found = await repo.history(site, limit + (cursor === undefined ? 1 : 2), newest);
    const entries = cursor === undefined ? found : found.filter(({ revision }) => revision !== cursor);
    const { items, next } = paged(entries, limit, ({ revision }) => revision);
    const revisions = items.map(({ revision }) => revision);
    const versions = await versionsOf({ repo }, site, revisions, recent);
    return {
      history: items.map(({ revision, author, at, subject, trailers }, index) => ({
        commit: revision,
        author,
        at,
        subject,
        reason: trailers.Reason ?? null,
        ...changesOf(versions[index]),
      })),
      next,
    };
  });
}

/** The manifests before and after each of these commits. */
async function versionsOf(
  { repo }: Pick<Context, 'repo'>,
  site: string,
  revisions: readonly string[],
  parsed: Parsed,
): Promise<Versions[]> {
  const texts = await repo.textsAt(
    site,
    revisions.flatMap((revision) => [revision, `${revision}^`]),
  );
  // Most texts occur twice: after one commit, and before the next. Each is parsed once.
  const parse = (text: string) => {
    const path = `${site}.yaml`;
    const known = parsed.get(`${path} ${text}`);
    if (known !== undefined) return known;
    const reading = readManifest(text, path).then((one) => (one.ok ? one.manifest : 'invalid'));
    parsed.set(`${path} ${text}`, reading);
    return reading;
  };
  const at = async (revision: string) => {
    const text = texts.get(revision);
    return text === undefined ? null : await parse(text);
  };
  return await Promise.all(
    revisions.map(async (revision) => ({ before: await at(`${revision}^`), after: await at(revision) })),
  );
}

function changesOf(versions: Versions | undefined): Pick<HistoryEntryView, 'valid' | 'changes'> {
  const { before = null, after = null } = versions ?? {};
  if (after === 'invalid') return { valid: false, changes: [] };
  return { valid: true, changes: manifestChanges(before === 'invalid' ? null : before, after) };
}

/** The manifests before and after a commit that changed the site. Throws `unknown_commit`, or `wrong_status`. */
export async function versionsOfCommit(
  { repo }: Pick<Context, 'repo'>,
  site: string,
  commit: string,
): Promise<{ readonly before: Manifest; readonly after: Manifest }> {
  return await fromGit(async () => {
    await repo.head();
    if (!(await repo.has(commit))) throw new ManagementProblem('unknown_commit');
    const [newest] = await repo.history(site, 1, commit);
    if (newest?.revision !== commit) throw new ManagementProblem('unknown_commit');
    const [versions] = await versionsOf({ repo }, site, [commit], new Map());
    const { before = null, after = null } = versions ?? {};
    if (before === null || after === null) {
      const detail = 'the commit created or deleted the site: remove or restore the container instead';
      throw new ManagementProblem('wrong_status', { detail });
    }
    if (before === 'invalid' || after === 'invalid') {
      throw new ManagementProblem('wrong_status', { detail: 'the commit’s old or new manifest is invalid' });
    }
    if (before.state !== after.state) {
      const detail = 'the commit removed or restored the site: restore or remove the container instead';
      throw new ManagementProblem('wrong_status', { detail });
    }
    return { before, after };
  });
}

/** Runs reads of the repository. Throws `sites_repo_unavailable`. */
async function fromGit<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (cause) {
    if (!(cause instanceof SitesRepoError)) throw cause;
    throw new ManagementProblem('sites_repo_unavailable', { cause });
  }
}
