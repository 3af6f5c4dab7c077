import { isRegular, siteAt, siteNamedBy } from './listing.ts';

/** What one commit did to a site's file. */
export interface FileEvent {
  readonly revision: string;
  /** The file's blob after the commit; `null`: no regular file is at the path. */
  readonly blob: string | null;
  /** True if nothing was at the path before the commit, and the commit moved nothing there. */
  readonly isNew: boolean;
  /** Set if nothing is at the path after the commit. */
  readonly gone: Disappearance | null;
}

/** How a file disappeared from its path. If both members are `null`, the commit removed it. */
interface Disappearance {
  /** The path to which the same commit moved it, recognized by name or content. */
  readonly movedTo: string | null;
  /** A submodule or link that the same commit added or changed: the file may be behind it. */
  readonly hiddenBy: string | null;
}

/** One page of the log: events by site. */
export interface LogPage {
  readonly events: ReadonlyMap<string, readonly FileEvent[]>;
  readonly commits: number;
  /** The first parent of the oldest commit; `null`: it has none. */
  readonly next: string | null;
}

/** Arguments for a `git log` whose output `parseEvents` parses. A merge is compared with its first parent. */
export const EVENT_FORMAT = [
  ...['--ignore-missing', '--format=%H %P', '--raw', '-z', '-t'],
  ...['--no-abbrev', '--no-renames', '--diff-merges=first-parent'],
] as const;

interface Entry {
  readonly path: string;
  readonly before: { readonly mode: string; readonly id: string };
  readonly after: { readonly mode: string; readonly id: string };
}

const NOTHING = '000000';

/** The events of these sites' files, newest first. */
export function parseEvents(output: Buffer, sites: ReadonlySet<string>): LogPage {
  const events = new Map<string, FileEvent[]>();
  let commits = 0;
  let next: string | null = null;
  for (const { revision, parent, entries } of commitsOf(output)) {
    commits += 1;
    next = parent;
    const index = once(() => indexOf(entries));
    for (const [site, own] of Map.groupBy(entries, ({ path }) => siteAt(path))) {
      if (site === null || !sites.has(site)) continue;
      const list = events.get(site) ?? [];
      events.set(site, list);
      list.push({ revision, ...eventOf(site, own, index) });
    }
  }
  return { events, commits, next };
}

function eventOf(site: string, own: readonly Entry[], index: () => Index): Omit<FileEvent, 'revision'> {
  // A file that becomes a folder makes two entries with the same path.
  const before = own.map((entry) => entry.before).find(({ mode }) => mode !== NOTHING);
  const after = own.map((entry) => entry.after).find(({ mode }) => mode !== NOTHING);
  if (after === undefined) {
    const { added, hiddenBy } = index();
    const movedTo = added.get(site) ?? added.get(before?.id ?? '') ?? null;
    return { blob: null, isNew: false, gone: { movedTo, hiddenBy } };
  }
  const isMoved = () => index().removed.has(site) || index().removed.has(after.id);
  return {
    blob: isRegular(after.mode) ? after.id : null,
    isNew: before === undefined && !isMoved(),
    gone: null,
  };
}

/** What a commit added (paths) and removed, by the site that the path names and by blob id. */
interface Index {
  readonly added: ReadonlyMap<string, string>;
  readonly removed: ReadonlySet<string>;
  readonly hiddenBy: string | null;
}

function indexOf(entries: readonly Entry[]): Index {
  const added = new Map<string, string>();
  const removed = new Set<string>();
  let hiddenBy: string | null = null;
  for (const { path, before, after } of entries) {
    const site = siteNamedBy(path);
    if (after.mode === '120000' || after.mode === '160000') hiddenBy ??= path;
    if (before.mode === NOTHING) {
      for (const key of [after.id, ...(site === null ? [] : [site])]) added.set(key, path);
    } else if (after.mode === NOTHING) {
      for (const key of [before.id, ...(site === null ? [] : [site])]) removed.add(key);
    }
  }
  return { added, removed, hiddenBy };
}

function once<Value>(compute: () => Value): () => Value {
  let known: { readonly value: Value } | null = null;
  return () => {
    known ??= { value: compute() };
    return known.value;
  };
}

interface Commit {
  readonly revision: string;
  readonly parent: string | null;
  readonly entries: Entry[];
}

function* commitsOf(output: Buffer): Generator<Commit> {
  let commit: Commit | null = null;
  const tokens = output.toString().split('\0');
  for (let index = 0; index < tokens.length; index += 1) {
    const token = tokens[index]?.trimStart() ?? '';
    const raw = /^:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) /.exec(token);
    if (raw !== null) {
      index += 1;
      const [, oldMode = '', newMode = '', oldId = '', newId = ''] = raw;
      commit?.entries.push({
        path: tokens[index] ?? '',
        before: { mode: oldMode, id: oldId },
        after: { mode: newMode, id: newId },
      });
      continue;
    }
    const [revision = '', parent = null] = token.trim().split(' ');
    if (revision === '') continue;
    if (commit !== null) yield commit;
    commit = { revision, parent, entries: [] };
  }
  if (commit !== null) yield commit;
}
