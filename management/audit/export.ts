import type { Context } from '../context/context.ts';
import { exportForms } from '../http/export-forms.ts';
import { type AuditEntry, type AuditFilter, listAudit } from './audit.repository.ts';

/** Rows that one query reads. */
const BATCH = 1_000;

/** The forms of an export. */
export const EXPORTS = exportForms<AuditEntry>([
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
  'count',
]);

/** All rows that match, as they are read. An error of the first query is thrown before any text. */
export async function* exported(
  { db }: Pick<Context, 'db'>,
  filter: AuditFilter,
  format: keyof typeof EXPORTS,
): AsyncGenerator<string> {
  const { head, line } = EXPORTS[format];
  for (let cursor: string | undefined; ; ) {
    const rows = await listAudit(db, filter, { limit: BATCH, cursor });
    const text = (cursor === undefined ? head : '') + rows.map(line).join('');
    if (text !== '') yield text;
    if (rows.length < BATCH) return;
    cursor = rows.at(-1)?.id;
  }
}
