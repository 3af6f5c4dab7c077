import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { pageOfList } from '../../../../gitops/kubernetes/client/paging.ts';

const metadata = (name: string) => ({ name, namespace: 'a', uid: `uid of ${name}`, resourceVersion: '7' });
/** The beginning of an item, which also occurs in texts of other items. */
const beginning = '},{"metadata":{"name":"';
const item = (name: string) => ({
  metadata: { ...metadata(name), annotations: { beginning } },
  spec: { beginning, list: [{ metadata: { name } }, { metadata: { labels: { name } } }] },
});
const partial = (name: string) => ({
  kind: 'PartialObjectMetadata',
  apiVersion: 'v1',
  metadata: metadata(name),
});
const other = (name: string) => ({ spec: { a: 1 }, metadata: metadata(name) });
const page = (items: readonly { metadata: { name: string } }[] | null, next?: string) => ({
  kind: 'ServiceList',
  apiVersion: 'v1',
  metadata: { resourceVersion: '9', continue: next, remainingItemCount: 3 },
  items,
});

test.each([
  ['items', page([item('one'), item('two'), item('"three"')], 'p2')],
  ['items with their kind', page([partial('one'), partial('two')])],
  ['items whose members are in another order', page([other('one'), other('two')])],
  ['one item', page([item('one')], '')],
  ['no items', page([])],
  ['no list of items', page(null)],
])('a page of %s is read whole', (_, { metadata: { continue: next = '' }, items, ...rest }) => {
  const text = `${JSON.stringify({ ...rest, metadata: { resourceVersion: '9', continue: next }, items })}\n`;
  const read = pageOfList(text, 'Service');
  expect(read).toMatchObject({ resourceVersion: '9', next });
  const expected = (items ?? []).map((one) => ({ ...one, apiVersion: 'v1', kind: 'Service' }));
  expect(read?.items.map(({ object }) => object)).toEqual(expected);
  const keys = (items ?? []).map(({ metadata: { name } }) => `a/${name}`);
  expect(read?.items.map(({ key, version }) => [key, version])).toEqual(keys.map((key) => [key, '7']));
});

test('a page whose members are in another order is read whole', () => {
  const { items, ...rest } = page([item('one'), item('two')]);
  const inItem = items?.map((one) => ({ ...one, status: { list: [1] } }));
  const read = pageOfList(JSON.stringify({ items: inItem, ...rest }), 'Service');
  expect(read?.items.map(({ key }) => key)).toEqual(['a/one', 'a/two']);
});

test('key, uid and version of an object keep no page in memory', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const megabytes = () => {
    collect();
    return process.memoryUsage().heapUsed / 1e6;
  };
  const read = () => {
    const long = metadata('a-name-of-more-than-twelve-characters');
    const one = { metadata: long, data: 'x'.repeat(60e6) };
    const items = pageOfList(JSON.stringify(page([one])), 'Service')?.items;
    return items?.map(({ key, uid, version }) => ({ key, uid, version }));
  };
  const before = megabytes();
  const named = read();
  // The engine keeps the text that a pattern was compared with last.
  /\w/.exec('a');
  expect(megabytes() - before).toBeLessThan(30);
  expect(named).toHaveLength(1);
});

test.each([
  '',
  'null',
  '<html>',
  '{"items":[]}',
  '{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"',
])('there is no page in %j', (text) => {
  expect(pageOfList(text, 'Service')).toBeNull();
});
