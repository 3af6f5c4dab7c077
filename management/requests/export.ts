import { ManagementProblem } from '../http/errors.ts';
import type { RequestRow } from './rows/record.ts';

const COLUMNS = [
  'time',
  'requestId',
  'site',
  'container',
  'method',
  'route',
  'status',
  'duration',
  'cache',
  'colo',
  'country',
  'bytesIn',
  'bytesOut',
  'bot',
  'consent',
  'events',
  'webContainerVersion',
  'signals',
  'plugins',
  'error',
  'cause',
  'probe',
] as const satisfies readonly (keyof RequestRow)[];

/** The forms of an export: its media type, its first line, and the line of a row. */
export const REQUEST_EXPORTS = {
  ndjson: {
    type: 'application/x-ndjson',
    head: '',
    line: (row: RequestRow) => `${JSON.stringify(row)}\n`,
  },
  csv: {
    type: 'text/csv',
    head: `${COLUMNS.join(',')}\r\n`,
    line: (row: RequestRow) => `${COLUMNS.map((name) => field(row[name])).join(',')}\r\n`,
  },
} as const;

interface ExportPage {
  readonly requests: readonly RequestRow[];
  readonly next: string | null;
  readonly missing: readonly string[];
}

/**
 * All rows as text, page by page as the reader takes them. Throws `search_unavailable` before any text if a day can't be
 * read wholly yet: an export has no place to say so. If that happens later, the text ends without its end.
 */
export async function* exportedRequests(
  read: (cursor: string | undefined) => Promise<ExportPage>,
  format: keyof typeof REQUEST_EXPORTS,
): AsyncGenerator<string> {
  const { head, line } = REQUEST_EXPORTS[format];
  for (let cursor: string | undefined; ; ) {
    const { requests, next, missing } = await read(cursor);
    if (missing.length > 0) {
      const detail = `the records of ${missing.join(', ')} are still being read`;
      throw new ManagementProblem('search_unavailable', { detail });
    }
    const text = (cursor === undefined ? head : '') + requests.map(line).join('');
    if (text !== '') yield text;
    if (next === null) return;
    cursor = next;
  }
}

/**
 * A field of RFC 4180. An apostrophe precedes what a spreadsheet would take for a formula (OWASP, "CSV Injection"):
 * strangers choose parts of a record.
 */
function field(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
