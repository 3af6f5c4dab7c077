import { ManagementProblem } from '../http/errors.ts';
import { exportForms } from '../http/export-forms.ts';
import type { RequestRow } from './rows/record.ts';

/** The formats of an export. */
export const REQUEST_EXPORTS = exportForms<RequestRow>([
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
  'counters',
  'error',
  'cause',
  'probe',
]);

interface ExportPage {
  readonly requests: readonly RequestRow[];
  readonly next: string | null;
  readonly missing: readonly string[];
}

/**
 * All rows as text, page by page as the reader takes them. Throws `search_unavailable` before any text if a day can't
 * be read wholly yet: an export has no place to say that rows are missing. If rows are found missing later, the
 * connection is broken off.
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
