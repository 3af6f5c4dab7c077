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

const FIELD = '\x1f';
const RECORD = '\x1e';

/** `git log` format that `parseLog` reads; the separators are control characters, which commit messages of Tagyard don't contain. */
export const LOG_FORMAT = `--format=%H%x1f%cI%x1f%an%x1f%ae%x1f%s%x1f%(trailers:only,unfold)%x1e`;

export function parseLog(text: string): HistoryEntry[] {
  return text
    .split(RECORD)
    .map((record) => record.trim())
    .filter((record) => record !== '')
    .map((record) => {
      const [revision = '', at = '', author = '', email = '', subject = '', trailers = ''] =
        record.split(FIELD);
      return { revision, at, author, email, subject, trailers: parseTrailers(trailers) };
    });
}

function parseTrailers(text: string): Record<string, string> {
  const pairs = text.split('\n').flatMap((line) => {
    const colon = line.indexOf(':');
    return colon > 0 ? [[line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const] : [];
  });
  return Object.fromEntries(pairs);
}

/** A site's file after a commit; `null`: the commit deleted it. */
interface FileVersion {
  readonly revision: string;
  readonly blob: string | null;
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

/** A `git log` that `parseVersions` parses. A merge is compared with its first parent. */
export function versionsLog(site: string, { revision, since, branchOnly = false }: VersionRange): string[] {
  return [
    ...['log', '--ignore-missing', '--format=%H', '--raw', '--no-abbrev', '--diff-merges=first-parent'],
    ...(branchOnly ? ['--first-parent'] : []),
    ...[revision, ...(since === undefined ? [] : [`^${since}`]), '--', `${site}.yaml`],
  ];
}

export function parseVersions(text: string): FileVersion[] {
  const entries = text.matchAll(/^([0-9a-f]{40,64})\n\n:\d+ (\d+) [0-9a-f]+ ([0-9a-f]+) /gm);
  return Array.from(entries, ([, revision = '', mode = '', blob = '']) => ({
    revision,
    blob: mode.startsWith('100') ? blob : null,
  }));
}
