import type { Result } from './query.ts';
import type { Format } from './syntax.ts';
import { resultJson } from './values.ts';

/** A result in one of the documented formats. */
export function formatted({ columns, rows }: Result, format: Format): { type: string; text: string } {
  const shown = rows.map((row) => columns.map(({ type }, index) => resultJson(row[index] ?? '', type)));
  const objects = shown.map((row) =>
    Object.fromEntries(columns.map(({ name }, index) => [name, row[index]])),
  );
  switch (format) {
    case 'JSON':
      return {
        type: 'application/json',
        text: JSON.stringify({ meta: columns, data: objects, rows: rows.length }),
      };
    case 'JSONEachRow':
      return {
        type: 'application/x-ndjson',
        text: objects.map((row) => `${JSON.stringify(row)}\n`).join(''),
      };
    case 'TabSeparated':
      return {
        type: 'text/tab-separated-values',
        text: shown.map((row) => `${row.map(cell).join('\t')}\n`).join(''),
      };
  }
}

const cell = (value: unknown): string =>
  (typeof value === 'string' ? value : JSON.stringify(value)).replace(/[\\\t\n]/g, (letter) =>
    letter === '\t' ? '\\t' : letter === '\n' ? '\\n' : '\\\\',
  );
