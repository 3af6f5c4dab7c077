import type { Outcome, Row, TableReport } from './table.ts';

/** Replaces each secret in a text, also if it is percent-encoded or a part of something in base64. */
export function redactor(secrets: readonly string[]): (text: string) => string {
  // The longest first: one secret may contain another.
  const hidden = secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => [secret, encodeURIComponent(secret), ...inBase64(secret)])
    .toSorted((a, b) => b.length - a.length);
  return (text) => hidden.reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text);
}

/** The fewest base64 digits that are replaced: shorter texts may also be a part of other words. */
const SHORTEST = 6;

/** The base64 digits that depend only on the secret, for each offset that it can have in a group of three bytes. */
function inBase64(secret: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    const digits = bytes.toString('base64url');
    const own = digits.slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
    return own.length < SHORTEST ? [] : [own, own.replaceAll('-', '+').replaceAll('_', '/')];
  });
}

const WIDTH = Math.max(...(['same', 'differs', 'not tried'] satisfies Outcome[]).map(({ length }) => length));
/** How many lines of a detail are shown at most; a log can be long. */
const SHOWN_LINES = 40;

export function renderHeading(table: string, subject: string): string {
  return `${table}${subject === '' ? '' : `: ${subject}`}\n`;
}

/** A row's outcome and name; below it, indented, the detail and, for a difference, the source. */
export function renderRow({ name, source, outcome, detail }: Row): string {
  const indent = ' '.repeat(WIDTH + 4);
  const lines = detail.split('\n').filter((line) => line.trim() !== '');
  const shown = lines.slice(0, SHOWN_LINES);
  if (lines.length > shown.length) shown.push(`… ${lines.length - shown.length} more lines (--json has all)`);
  if (outcome === 'differs') shown.push(`source: docs/facts.md, ${source}`);
  return [`  ${outcome.padEnd(WIDTH)}  ${name}`, ...shown.map((line) => `${indent}${line}`)]
    .join('\n')
    .concat('\n');
}

/** The last lines of a table: its counts, what it cost, and what could not be removed. */
export function renderEnd({ rows, costs, remains }: TableReport): string {
  const { same, differs, 'not tried': not } = countsOf(rows);
  const counts = `${same} same, ${differs} differ, ${not} not tried`;
  return [[counts, ...costs].join('; '), ...remains.map((thing) => `NOT REMOVED: ${thing}`)]
    .map((line) => `  ${line}\n`)
    .join('');
}

function countsOf(rows: readonly Row[]): Record<Outcome, number> {
  const count = (outcome: Outcome) => rows.filter((row) => row.outcome === outcome).length;
  return { same: count('same'), differs: count('differs'), 'not tried': count('not tried') };
}

/** 1: something differs, or could not be removed. Else 3: something was not tried, or there are no rows. Else 0. */
export function exitCodeOf(reports: readonly TableReport[]): 0 | 1 | 3 {
  const { same, differs, 'not tried': not } = countsOf(reports.flatMap(({ rows }) => rows));
  if (differs > 0 || reports.some(({ remains }) => remains.length > 0)) return 1;
  return not > 0 || same === 0 ? 3 : 0;
}

/** The form of `--json`. */
export function reportJson(reports: readonly TableReport[], redact: (text: string) => string) {
  const tables = reports.map(({ rows, costs, remains, ...table }) => ({
    ...table,
    subject: redact(table.subject),
    rows: rows.map((row) => ({ ...row, detail: redact(row.detail) })),
    costs: costs.map(redact),
    remains: remains.map(redact),
  }));
  return { exitCode: exitCodeOf(reports), tables };
}
