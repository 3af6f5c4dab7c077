import { expect, test } from 'vitest';
import { type FileCommit, fastImportStream } from '../../../../sites/repo/edits/fast-import.ts';

const commit = (extra: Partial<FileCommit> = {}): FileCommit => ({
  path: 'shop.yaml',
  text: 'x: ä\n',
  subject: 'Change shop',
  author: { name: 'Ada', email: 'ada@example.test' },
  trailers: { Site: 'shop' },
  ...extra,
});
const streamOf = (parent: string | null, ...commits: FileCommit[]) =>
  fastImportStream('refs/heads/main', parent, commits, 1_700_000_000).toString();

test('the first commit has the given parent, the next one follows, and the stream asks for each id', () => {
  expect(streamOf('r0', commit(), commit({ text: null }))).toBe(
    `commit refs/heads/main
mark :1
author Ada <ada@example.test> 1700000000 +0000
committer Tagyard <tagyard@localhost> 1700000000 +0000
data 24
Change shop

Site: shop

from r0
M 100644 inline "shop.yaml"
data 6
x: ä


commit refs/heads/main
mark :2
author Ada <ada@example.test> 1700000000 +0000
committer Tagyard <tagyard@localhost> 1700000000 +0000
data 24
Change shop

Site: shop

D "shop.yaml"

get-mark :1
get-mark :2
done
`,
  );
});

test('the first commit of an empty repository has no parent', () => {
  const stream = streamOf(null, commit());
  expect(stream).toMatch(/^reset refs\/heads\/main\ncommit/);
  expect(stream).not.toContain('from ');
});

test.each([
  ['a line break in the subject', { subject: 'one\ntwo' }, /\none two\n\nSite/],
  [
    'line breaks in a trailer',
    { trailers: { Reason: 'a\r\nActor: root\u2028x' } },
    /\nReason: a Actor: root x\n/,
  ],
  [
    'brackets in a name',
    { author: { name: 'Eve <root>\n', email: 'e@x.test' } },
    /\nauthor Eve root <e@x\.test> /,
  ],
  ['an empty name', { author: { name: ' <> ', email: 'e@x.test' } }, /\nauthor unknown <e@x\.test> /],
  ['spaces in an address', { author: { name: 'Eve', email: 'e @x\n.test>' } }, /\nauthor Eve <e@x\.test> /],
  ['quotes in a path', { path: 'a"b\\c\nd.yaml' }, /inline "a\\"b\\\\c\\nd\.yaml"\n/],
])('makes %s harmless', (_what, extra, expected) => {
  expect(streamOf('r0', commit(extra))).toMatch(expected);
});
