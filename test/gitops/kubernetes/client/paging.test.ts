import { expect, test } from 'vitest';
import { pageOfList } from '../../../../gitops/kubernetes/client/paging.ts';

const metadata = (name: string) => ({ name, namespace: 'a', uid: `uid of ${name}`, resourceVersion: '7' });

test.each([
  ['items', [{ metadata: metadata('one'), spec: {} }, { metadata: metadata('two') }], 'p2'],
  ['items with a kind of their own', [{ kind: 'PartialObjectMetadata', metadata: metadata('one') }], ''],
  ['no items', [], ''],
  ['no list of items', null, ''],
])('a page of %s is read whole', (_, items, next) => {
  const page = { kind: 'ServiceList', metadata: { resourceVersion: '9', continue: next }, items };
  expect(pageOfList(page, 'Service')).toEqual({
    items: (items ?? []).map((one) => ({ ...one, apiVersion: 'v1', kind: 'Service' })),
    resourceVersion: '9',
    next,
  });
});

test.each([null, 'text', {}, { items: [] }])('there is no page in %j', (body) => {
  expect(pageOfList(body, 'Service')).toBeNull();
});
