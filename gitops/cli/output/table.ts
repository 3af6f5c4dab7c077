import { stripVTControlCharacters } from 'node:util';
import { escapeHidden } from '../../../base/text.ts';

/**
 * Left-aligned columns, two spaces apart. Colour codes have no width. Line breaks and tabs in a cell are escaped: a file
 * name with one could forge a row.
 */
export function table(given: readonly (readonly string[])[]): string {
  const rows = given.map((row) => row.map((cell) => cell.replace(/[\n\r\t]/g, escapeHidden)));
  const width = (text: string) => stripVTControlCharacters(text).length;
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => width(row[column] ?? ''))),
  );
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - width(cell)))
        .join('  ')
        .trimEnd(),
    )
    .map((line) => `${line}\n`)
    .join('');
}
