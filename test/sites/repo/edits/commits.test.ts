import { expect, test } from 'vitest';
import { foldEdits, type SiteEdit } from '../../../../sites/repo/edits/commits.ts';

const edit = (site: string, change: SiteEdit['edit']): SiteEdit => ({
  site,
  edit: change,
  subject: `Change ${site}`,
  author: { name: 'Ada', email: 'ada@example.test' },
  trailers: {},
});
const texts = new Map([['shop', 'v1']]);
const fulfilled = (revision: string, changed: boolean) => ({
  status: 'fulfilled',
  value: { revision, changed },
});

test('later edits of a site start from the earlier ones, and each is a commit', async () => {
  const edits = ['2', '3'].map((digit) => edit('shop', (text) => `${text}${digit}`));
  const { commits, outcomes } = await foldEdits(edits, 'r0', texts);
  expect(commits.map(({ path, text }) => [path, text])).toEqual([
    ['shop.yaml', 'v12'],
    ['shop.yaml', 'v123'],
  ]);
  expect(outcomes(['r1', 'r2'])).toEqual([fulfilled('r1', true), fulfilled('r2', true)]);
});

test('an edit that keeps the text makes no commit, and resolves to the revision that has the text', async () => {
  const same = edit('shop', (text) => text);
  const { commits, outcomes } = await foldEdits([same, edit('other', () => 'new'), same], 'r0', texts);
  expect(commits).toHaveLength(1);
  expect(outcomes(['r1'])).toEqual([fulfilled('r0', false), fulfilled('r1', true), fulfilled('r1', false)]);
});

test('an edit that throws doesn’t affect other edits', async () => {
  const failure = new Error('refused');
  const refused = edit('shop', () => {
    throw failure;
  });
  const { commits, outcomes } = await foldEdits([refused, edit('shop', () => 'v2')], 'r0', texts);
  expect(commits.map(({ text }) => text)).toEqual(['v2']);
  expect(outcomes(['r1'])).toEqual([{ status: 'rejected', reason: failure }, fulfilled('r1', true)]);
});

test('an edit gets null for a site that was deleted or never existed, and returns null to delete a site', async () => {
  const seen: (string | null)[] = [];
  const record = (text: string | null) => {
    seen.push(text);
    return text;
  };
  const { commits } = await foldEdits(
    [edit('new', record), edit('shop', () => null), edit('shop', record)],
    'r0',
    texts,
  );
  expect(seen).toEqual([null, null]);
  expect(commits.map(({ text }) => text)).toEqual([null]);
});

test('the first edit of an empty repository makes a commit even if it returns no text', async () => {
  const none = edit('shop', () => null);
  const { commits, outcomes } = await foldEdits([none, none], null, new Map());
  expect(commits).toHaveLength(1);
  expect(outcomes(['r1'])).toEqual([fulfilled('r1', true), fulfilled('r1', false)]);
});
