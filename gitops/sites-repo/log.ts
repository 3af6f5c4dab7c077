import { escapeHidden } from '../base/text.ts';
import { EVENT_FORMAT } from './file-events.ts';

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

/** A `git log` that `parseEvents` parses. */
export function versionsLog(site: string, { revision, since, branchOnly = false }: VersionRange): string[] {
  return [
    ...['log', ...EVENT_FORMAT, ...(branchOnly ? ['--first-parent'] : [])],
    ...[revision, ...(since === undefined ? [] : [`^${since}`]), '--', `${site}.yaml`],
  ];
}
