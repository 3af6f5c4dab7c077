import { expect, test } from 'vitest';
import { branchTips, siteBlobs } from '../../../gitops/sites-repo/listing.ts';

const id = 'a'.repeat(40);

test.each([
  ['a file', `100644 blob ${id}\tshop.yaml`, ['shop']],
  ['an executable file', `100755 blob ${id}\tshop.yaml`, ['shop']],
  ['a SHA-256 id', `100644 blob ${'b'.repeat(64)}\tshop.yaml`, ['shop']],
  ['two files', `100644 blob ${id}\ta.yaml\u0000100644 blob ${id}\tb.yaml\u0000`, ['a', 'b']],
  ['a name with a line break', `100644 blob ${id}\ta\nb.yaml`, ['a\nb']],
  ['a link', `120000 blob ${id}\tshop.yaml`, []],
  ['a submodule', `160000 commit ${id}\tshop.yaml`, []],
  ['a folder', `040000 tree ${id}\tshop.yaml`, []],
  ['a file in a folder', `100644 blob ${id}\tsub/shop.yaml`, []],
  ['another ending', `100644 blob ${id}\tshop.yml`, []],
  ['an empty tree', '', []],
])('site files among %s', (_what, listing, sites) => {
  expect(siteBlobs(Buffer.from(listing)).map(({ site }) => site)).toEqual(sites);
});

test('revisions by branch', () => {
  const listing = Buffer.from(`${id} main\n${'b'.repeat(40)} feature/a\n`);
  expect([...branchTips(listing)]).toEqual([
    ['main', id],
    ['feature/a', 'b'.repeat(40)],
  ]);
  expect([...branchTips(Buffer.from(''))]).toEqual([]);
});
