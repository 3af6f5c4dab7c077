/** How an export writes rows: its media type, its first line, and the line of a row. */
interface ExportForm<Row> {
  readonly type: string;
  readonly head: string;
  readonly line: (row: Row) => string;
}

/** The forms of an export, by the ending of its file. CSV has a row's members in `columns`, NDJSON all of them. */
export function exportForms<Row extends object>(
  columns: readonly (keyof Row & string)[],
): Readonly<Record<'ndjson' | 'csv', ExportForm<Row>>> {
  return {
    ndjson: { type: 'application/x-ndjson', head: '', line: (row) => `${JSON.stringify(row)}\n` },
    csv: {
      type: 'text/csv',
      head: csvLine(columns),
      line: (row) => csvLine(columns.map((name) => row[name])),
    },
  };
}

/** A line of CSV (RFC 4180). An object is written as JSON, null as an empty field. */
export function csvLine(values: readonly unknown[]): string {
  return `${values.map(field).join(',')}\r\n`;
}

/**
 * An apostrophe precedes what a spreadsheet would take for a formula (OWASP, "CSV Injection"): tenants and strangers
 * choose parts of what is exported.
 */
function field(value: unknown): string {
  const text = typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? '');
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
