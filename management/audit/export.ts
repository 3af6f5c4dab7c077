import type { Context } from '../context/context.ts';
import { type AuditEntry, type AuditFilter, listAudit } from './audit.repository.ts';

/** Rows that one query reads. */
const BATCH = 1_000;

const COLUMNS = [
  'id',
  'at',
  'actor',
  'action',
  'status',
  'code',
  'clientId',
  'organisationId',
  'containerId',
  'requestId',
  'revision',
] as const satisfies readonly (keyof AuditEntry)[];

/** The forms of an export by media type: the ending of its file, its first line, and the line of a row. */
export const EXPORTS = {
  'application/x-ndjson': {
    ending: 'ndjson',
    head: '',
    line: (row: AuditEntry) => `${JSON.stringify(row)}\n`,
  },
  'text/csv': {
    ending: 'csv',
    head: `${COLUMNS.join(',')}\r\n`,
    line: (row: AuditEntry) => `${COLUMNS.map((name) => quoted(row[name])).join(',')}\r\n`,
  },
} as const;

/** All rows that match, as they are read. What the first query refuses is thrown before any text. */
export async function* exported(
  { db }: Pick<Context, 'db'>,
  filter: AuditFilter,
  type: keyof typeof EXPORTS,
): AsyncGenerator<string> {
  const { head, line } = EXPORTS[type];
  for (let cursor: string | undefined; ; ) {
    const rows = await listAudit(db, filter, { limit: BATCH, cursor });
    const text = (cursor === undefined ? head : '') + rows.map(line).join('');
    if (text !== '') yield text;
    if (rows.length < BATCH) return;
    cursor = rows.at(-1)?.id;
  }
}

/**
 * A field of RFC 4180. An apostrophe precedes what a spreadsheet would take for a formula (OWASP, "CSV Injection"):
 * callers choose their subjects.
 */
function quoted(value: string | number | null): string {
  const text = String(value ?? '');
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
