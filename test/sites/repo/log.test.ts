import { expect, test } from 'vitest';
import { parseLog, versionsLog } from '../../../sites/repo/log.ts';

const record = (trailers: string) =>
  ['r1', '2026-01-01T00:00:00+00:00', 'Ada', 'ada@example.test', 'Change: shop', trailers].join('\0');

test('a log entry has the fields and trailers of its commit', () => {
  const text = `${record('Site: shop\nReason: a: b\nno trailer\n: empty')}\0\n${record('')}\0\n`;
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
] as const)('the log of a site selects the commits of %o', (range, revisions, firstParent) => {
  const args = versionsLog('shop', range);
  expect(args.slice(-2)).toEqual(['--', 'shop.yaml']);
  expect(args.slice(-2 - revisions.length, -2)).toEqual(revisions);
  expect(args.includes('--first-parent')).toBe(firstParent);
});

test('control characters in a commit are made visible, and can’t forge fields or entries', () => {
  const forged = 'Ada\x1fx\x1e\x1b[31m';
  const text = `${['r1', 'now', forged, 'a@b', 'x\u009b\u202e', 'Actor: \x1b[2J'].join('\0')}\0\n`;
  expect(parseLog(text)).toEqual([
    {
      revision: 'r1',
      at: 'now',
      author: 'Ada\\u001fx\\u001e\\u001b[31m',
      email: 'a@b',
      subject: 'x\\u009b\\u202e',
      trailers: { Actor: '\\u001b[2J' },
    },
  ]);
});
