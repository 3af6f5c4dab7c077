import { expect, test } from 'vitest';
import {
  branchTips,
  describeMisplaced,
  siteBlobs,
  siteTree,
  tenantBlobs,
} from '../../../sites/repo/listing.ts';

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
  ['no entry', '', []],
])('the sites of a tree with %s are $2', (_what, listing, sites) => {
  expect(siteBlobs(Buffer.from(listing)).map(({ site }) => site)).toEqual(sites);
});

test.each<[string, string, object | null]>([
  ['a link', `120000 blob ${id}\tshop.yaml`, { path: 'shop.yaml', form: 'link' }],
  ['a submodule', `160000 commit ${id}\tshop.yaml`, { path: 'shop.yaml', form: 'submodule' }],
  ['a folder', `040000 tree ${id}\tshop.yaml`, { path: 'shop.yaml', form: 'folder' }],
  ['a file in a folder', `100644 blob ${id}\ta/b/shop.yaml`, { path: 'a/b/shop.yaml', form: 'file' }],
  ['another ending', `100644 blob ${id}\tshop.yml`, { path: 'shop.yml' }],
  ['an additional ending', `100644 blob ${id}\tshop.yaml.orig`, { path: 'shop.yaml.orig' }],
  ['another case', `100644 blob ${id}\tShop.YAML`, { path: 'Shop.YAML' }],
  ['another name', `100644 blob ${id}\tshop.yamlx`, null],
  ['a copy beside the file', `100644 blob ${id}\ta/shop.yaml\0${`100644 blob ${id}\tshop.yaml`}`, null],
])('given %s, what is misplaced is $2', (_what, listing, expected) => {
  const { misplaced } = siteTree(Buffer.from(listing));
  expect(misplaced).toMatchObject(expected === null ? [] : [{ site: 'shop', id, ...expected }]);
  for (const one of misplaced) expect(describeMisplaced(one)).toContain(one.path);
});

const TENANT = '7c9e6679-7425-40de-944b-e07fc1f90ae7';

test.each(['clients', 'organisations'])('files in %s are of no site, and listed apart', (folder) => {
  const name = `${folder}/${TENANT}`;
  const listing = Buffer.from(
    `040000 tree ${id}\t${folder}\0${`100644 blob ${id}\t${name}.yaml`}\0${`100644 blob ${id}\tshop.yaml`}`,
  );
  expect(siteTree(listing)).toEqual({ files: [{ site: 'shop', blob: id }], misplaced: [] });
  expect(tenantBlobs(listing)).toEqual([{ site: name, blob: id }]);
});

test('a manifest in the folder of clients is still a misplaced one', () => {
  const listing = Buffer.from(`100644 blob ${id}\tclients/shop.yaml`);
  expect(siteTree(listing).misplaced).toMatchObject([{ site: 'shop', path: 'clients/shop.yaml' }]);
  expect(tenantBlobs(listing)).toEqual([]);
});

test('the tips of branches are listed by branch', () => {
  const listing = Buffer.from(`${id} main\n${'b'.repeat(40)} feature/a\n`);
  expect([...branchTips(listing)]).toEqual([
    ['main', id],
    ['feature/a', 'b'.repeat(40)],
  ]);
  expect([...branchTips(Buffer.from(''))]).toEqual([]);
});
