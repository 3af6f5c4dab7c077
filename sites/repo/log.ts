import { escapeHidden } from '../../base/text.ts';
import { EVENT_FORMAT } from './file-events.ts';
import { siteAt } from './listing.ts';

/** One commit that touched a site's file. */
export interface HistoryEntry {
  readonly revision: string;
  /** ISO 8601. */
  readonly at: string;
  readonly author: string;
  readonly email: string;
  readonly subject: string;
  readonly trailers: Readonly<Record<string, string>>;
}

/** A commit with the sites whose files it touched. */
export interface CommitEntry extends HistoryEntry {
  readonly sites: readonly string[];
}

/**
 * Arguments of a `git log` that `parseCommits` reads: an empty part, the fields, another empty part, and the paths. No
 * commit contains a NUL and no path is empty, so no author can forge an entry.
 */
export const COMMITS_LOG = [
  '--format=%x00%H%x00%cI%x00%an%x00%ae%x00%s%x00%(trailers:only,unfold)%x00',
  '--name-only',
  '--no-renames',
  '-z',
] as const;

/** Parses the output of `COMMITS_LOG`. */
export function parseCommits(text: string): CommitEntry[] {
  const parts = text.split('\0');
  const entries: CommitEntry[] = [];
  for (let start = 0; start + FIELDS + 1 < parts.length; ) {
    const paths = start + FIELDS + 2;
    const end = parts.indexOf('', paths);
    const [entry] = parseLog(`${parts.slice(start + 1, paths - 1).join('\0')}\0`);
    const sites = parts.slice(paths, end).flatMap((path) => siteAt(path.trimStart()) ?? []);
    if (entry !== undefined) entries.push({ ...entry, sites });
    if (end === -1) break;
    start = end;
  }
  return entries;
}

const FIELDS = 6;

/** `git log` format that `parseLog` reads. No commit contains a NUL, so no author can forge a field or an entry. */
export const LOG_FORMAT = '--format=%H%x00%cI%x00%an%x00%ae%x00%s%x00%(trailers:only,unfold)%x00';

/** Parses log entries. Other people wrote the names and messages, so hidden characters are escaped. */
export function parseLog(text: string): HistoryEntry[] {
  const values = text.split('\0');
  return Array.from({ length: Math.floor(values.length / FIELDS) }, (_, index) => {
    const fields = values.slice(index * FIELDS, (index + 1) * FIELDS);
    const [revision = '', at = '', author = '', email = '', subject = ''] = fields.map((field) =>
      escapeHidden(field.trim()),
    );
    return { revision, at, author, email, subject, trailers: parseTrailers(fields[5] ?? '') };
  });
}

function parseTrailers(text: string): Record<string, string> {
  const pairs = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon > 0
      ? [[escapeHidden(line.slice(0, colon).trim()), escapeHidden(line.slice(colon + 1).trim())] as const]
      : [];
  });
  return Object.fromEntries(pairs);
}

/** Selects commits of a site's file. */
export interface VersionRange {
  /** The newest revision to include. */
  readonly revision: string;
  /** Excludes this revision and its ancestors; ignored where the repository no longer has it. */
  readonly since?: string | undefined;
  /** Only first parents: commits of the branch itself, not of what was merged into it. */
  readonly branchOnly?: boolean;
}

/** Arguments of a `git log` whose output `parseEvents` parses. */
export function versionsLog(site: string, { revision, since, branchOnly = false }: VersionRange): string[] {
  return [
    ...['log', ...EVENT_FORMAT, ...(branchOnly ? ['--first-parent'] : [])],
    ...[revision, ...(since === undefined ? [] : [`^${since}`]), '--', `${site}.yaml`],
  ];
}
