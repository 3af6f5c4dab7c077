import { expect, test } from 'vitest';
import { manifestChanges } from '../../../management/view/manifest-plan.ts';
import { dryRunQuery, isDryRun, planOf } from '../../../management/view/plan.ts';
import { manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

test.each([
  ['nothing', { a: 1, b: [{ id: 'x' }] }, { b: [{ id: 'x' }], a: 1 }, []],
  ['a value', { a: { b: 1 } }, { a: { b: 2 } }, [{ path: 'a.b', from: 1, to: 2 }]],
  ['a member that is new', {}, { a: { b: 1 } }, [{ path: 'a', from: null, to: { b: 1 } }]],
  ['a member that is gone', { a: [1] }, {}, [{ path: 'a', from: [1], to: null }]],
  ['nothing of a member that is missing or null', { a: null }, { b: null }, []],
  ['a list of values', { a: [1, 2] }, { a: [2] }, [{ path: 'a', from: [1, 2], to: [2] }]],
  [
    'an entry of a list',
    {
      domains: [
        { domain: 'a.example', n: 1 },
        { domain: 'b.example', n: 1 },
      ],
    },
    {
      domains: [
        { domain: 'c.example', n: 3 },
        { domain: 'a.example', n: 2 },
      ],
    },
    [
      { path: 'domains[a.example].n', from: 1, to: 2 },
      { path: 'domains[b.example]', from: { domain: 'b.example', n: 1 }, to: null },
      { path: 'domains[c.example]', from: null, to: { domain: 'c.example', n: 3 } },
    ],
  ],
  [
    'the order of a list',
    { domains: [{ domain: 'a.example' }, { domain: 'b.example' }] },
    { domains: [{ domain: 'b.example' }, { domain: 'a.example' }] },
    [{ path: 'domains', from: ['a.example', 'b.example'], to: ['b.example', 'a.example'] }],
  ],
  [
    'a whole list, if two of its entries have the same identity',
    { a: [{ id: 'x', n: 1 }, { id: 'x' }] },
    { a: [] },
    [{ path: 'a', from: [{ id: 'x', n: 1 }, { id: 'x' }], to: [] }],
  ],
])('a plan shows %s', (_, before, after, changes) => {
  expect(planOf(before, after)).toEqual({ changes });
});

test('a plan never shows a secret, only that it has changed, at any depth', () => {
  const changes = (from: object | null, to: object | null) => planOf(from, to).changes;
  expect(changes({ secret: 'one' }, { secret: 'two' })).toEqual([
    { path: 'secret', from: '(secret)', to: '(new secret)' },
  ]);
  expect(changes(null, { secret: 'one' })).toEqual([{ path: 'secret', from: null, to: '(secret)' }]);
  expect(changes({}, { list: [{ id: 'x', deep: { key: 'one' } }] })).toEqual([
    { path: 'list', from: null, to: [{ id: 'x', deep: { key: '(secret)' } }] },
  ]);
  expect(changes({ list: [{ id: 'x', key: 'one' }] }, { list: [] })).toEqual([
    { path: 'list[x]', from: { id: 'x', key: '(secret)' }, to: null },
  ]);
});

test('a plan shows a manifest in the API’s terms', () => {
  const manifest = manifestSchema.parse(manifestInput('acme', 0, {}));
  const other = { ...manifest, suspend: true, protect: true, containerConfig: 'other', name: 'New' };
  expect(manifestChanges(manifest, other)).toEqual([
    { path: 'name', from: manifest.name, to: 'New' },
    { path: 'suspended', from: false, to: true },
    { path: 'protected', from: false, to: true },
    { path: 'containerConfigB64', from: '(secret)', to: '(new secret)' },
  ]);
  const all = JSON.stringify(manifestChanges(null, manifest));
  expect(all).toContain('loaderToken');
  expect(all).not.toContain(manifest.containerConfig.slice(0, 60));
});

test('a query can ask for a dry run, and is refused if the parameter’s name or value is wrong', () => {
  expect([{ dryRun: '1' }, { dryRun: 'true' }, { dryRun: '0' }, {}, null].map(isDryRun)).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  for (const query of [{ dryrun: '1' }, { dry_run: '1' }, { 'dry-run': 'true' }, { dryRun: 'yes' }]) {
    expect(dryRunQuery.safeParse(query).success).toBe(false);
  }
  expect(dryRunQuery.safeParse({ dryRun: '1', other: 'x' }).success).toBe(true);
});
