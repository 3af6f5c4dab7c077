import { describe, expect, test } from 'vitest';
import { exitCodeOf, redactor, renderEnd, renderRow, reportJson } from './report.ts';
import type { Outcome, TableReport } from './table.ts';

const report = (outcomes: readonly Outcome[], remains: readonly string[] = []): TableReport => ({
  table: 'lights',
  subject: 'a lamp',
  rows: outcomes.map((outcome) => ({ name: 'shines', source: 'Lights', outcome, detail: `${outcome}!` })),
  costs: ['2 calls'],
  remains,
});

describe('the exit code', () => {
  test.each<[string, Outcome[][], number]>([
    ['all the same', [['same', 'same'], ['same']], 0],
    ['one that differs', [['same'], ['not tried', 'differs']], 1],
    ['one not tried', [['same'], ['same', 'not tried']], 3],
    ['none at all', [[]], 3],
  ])('of a report with %s is $2', (_what, tables, code) => {
    expect(exitCodeOf(tables.map((outcomes) => report(outcomes)))).toBe(code);
  });

  test('is 1 where something could not be removed', () => {
    expect(exitCodeOf([report(['same'], ['a lamp'])])).toBe(1);
  });
});

describe('the output', () => {
  test('has the detail below a row, and the source of what differs', () => {
    const row = { name: 'shines', source: 'Lights', outcome: 'differs', detail: 'dark\n\ncold' } as const;
    expect(renderRow(row)).toBe(
      [
        '  differs    shines',
        '             dark',
        '             cold',
        '             source: docs/facts.md, Lights',
        '',
      ].join('\n'),
    );
    expect(renderRow({ ...row, outcome: 'same', detail: '' })).toBe('  same       shines\n');
  });

  test('cuts a long detail', () => {
    const detail = Array.from({ length: 100 }, (_, line) => `line ${line}`).join('\n');
    const shown = renderRow({ name: 'shines', source: 'Lights', outcome: 'not tried', detail });
    expect(shown.split('\n')).toHaveLength(43);
    expect(shown).toContain('… 60 more lines (--json has all)');
  });

  test('ends with the counts, the costs and what could not be removed', () => {
    expect(renderEnd(report(['same', 'differs', 'not tried', 'same'], ['a lamp']))).toBe(
      '  2 same, 1 differ, 1 not tried; 2 calls\n  NOT REMOVED: a lamp\n',
    );
  });

  test('has no secret in it, in any form', () => {
    const redact = redactor(['s3cret/+', 'id=GTM-A&auth=s3cret/+', '']);
    expect(redact('a s3cret/+ and s3cret%2F%2B and id=GTM-A&auth=s3cret/+')).toBe(
      'a [secret] and [secret] and [secret]',
    );
  });

  test.each(['a', 'ab', 'abc'])('has no base64 of a secret in it, with “%s” before the secret', (before) => {
    const redact = redactor(['s3cret-auth?~']);
    for (const encoding of ['base64', 'base64url'] as const) {
      const shown = redact(Buffer.from(`${before}s3cret-auth?~&z=~`).toString(encoding));
      const parts = shown.split('[secret]');
      expect(parts).toHaveLength(2);
      expect(Buffer.from(parts.join(''), encoding).toString()).not.toMatch(/s3c|cre|ret|aut|uth/);
    }
  });

  test('as JSON has no secret in it either', () => {
    const { tables } = reportJson([report(['differs'], ['a differs! thing'])], redactor(['differs!']));
    expect(tables).toEqual([
      {
        table: 'lights',
        subject: 'a lamp',
        rows: [{ name: 'shines', source: 'Lights', outcome: 'differs', detail: '[secret]' }],
        costs: ['2 calls'],
        remains: ['a [secret] thing'],
      },
    ]);
  });
});
