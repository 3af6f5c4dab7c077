import { expect, test } from 'vitest';
import { parseLog, parseVersions, versionsLog } from '../../../gitops/sites-repo/log.ts';

const record = (trailers: string) =>
  ['r1', '2026-01-01T00:00:00+00:00', 'Ada', 'ada@example.test', 'Change: shop', trailers].join('\x1f');

test('a log entry has the fields and trailers of its commit', () => {
  const text = `${record('Site: shop\nReason: a: b\nno trailer\n: empty')}\x1e\n${record('')}\x1e\n`;
  const entry = {
    revision: 'r1',
    at: '2026-01-01T00:00:00+00:00',
    author: 'Ada',
    email: 'ada@example.test',
    subject: 'Change: shop',
  };
  expect(parseLog(text)).toEqual([
    { ...entry, trailers: { Site: 'shop', Reason: 'a: b' } },
    { ...entry, trailers: {} },
  ]);
  expect(parseLog('\n')).toEqual([]);
});

test.each([
  [{ revision: 'r9' }, ['r9'], false],
  [{ revision: 'r9', since: 'r1' }, ['r9', '^r1'], false],
  [{ revision: 'r9', branchOnly: true }, ['r9'], true],
] as const)('selects the commits of %o', (range, revisions, firstParent) => {
  const args = versionsLog('shop', range);
  expect(args.slice(-2)).toEqual(['--', 'shop.yaml']);
  expect(args.slice(-2 - revisions.length, -2)).toEqual(revisions);
  expect(args.includes('--first-parent')).toBe(firstParent);
});

test('a version is the blob after its commit, or null where the commit deleted the file or made it a link', () => {
  const [a, b] = ['a'.repeat(40), 'b'.repeat(40)];
  const line = (revision: string, mode: string, status: string) =>
    `${revision}\n\n:100644 ${mode} ${'c'.repeat(40)} ${b} ${status}\tshop.yaml\n`;
  const text = [
    line('1'.repeat(40), '100644', 'M'),
    line('2'.repeat(40), '000000', 'D'),
    line(a, '120000', 'T'),
  ];
  expect(parseVersions(text.join('\n'))).toEqual([
    { revision: '1'.repeat(40), blob: b },
    { revision: '2'.repeat(40), blob: null },
    { revision: a, blob: null },
  ]);
});
