import { beforeEach, describe, expect, test } from 'vitest';
import type { Ownership } from '../../../base/ownership.ts';
import type { Observed } from '../../../gitops/appliers/contract.ts';
import { Inventory } from '../../../gitops/pass/inventory.ts';
import type { ResourceStatus } from '../../../gitops/report/report.ts';
import { change, desiredSite, resource } from '../../support/gitops/plans.ts';

const ours = (site: string): Ownership => ({ kind: 'ours', site, host: 'tag-1' });
const seen = (key: string, owner: Ownership): Observed => ({
  target: 'kv',
  key,
  hash: 'h1',
  owner,
  ref: key,
});
const status = (key: string, hash: string | null, target = 'kv'): ResourceStatus => ({
  target,
  key,
  hash,
  state: hash === null ? 'pending' : 'applied',
});
let inventory: Inventory;
const keys = (...sites: string[]) => [...inventory.keys('kv', new Set(sites))].sort();
beforeEach(() => {
  inventory = new Inventory();
});

describe('the keys of a site', () => {
  test('are those with its mark that a full observation found', () => {
    inventory.record('kv', [seen('a', ours('one')), seen('b', ours('two'))], null);
    inventory.record('kv', [seen('c', ours('one')), seen('d', { kind: 'foreign', by: 'x' })], null);
    expect([keys('one'), keys('two'), inventory.count('kv'), inventory.count('dns')]).toEqual([
      ['c'],
      [],
      1,
      0,
    ]);
  });

  test('are replaced by a partial observation only if it covers the site', () => {
    inventory.record('kv', [seen('a', ours('one')), seen('b', ours('two'))], null);
    inventory.record('kv', [seen('c', ours('one')), seen('x', ours('two'))], new Set(['one']));
    expect([keys('one'), keys('two'), keys('one', 'two')]).toEqual([['c'], ['b'], ['b', 'c']]);
  });

  test('include what a run adds, and what the site’s manifest asked for when the site was settled', () => {
    inventory.add('kv', 'one', 'a');
    inventory.add('kv', 'one', 'b');
    inventory.settle({ site: 'one', resources: [status('c', null), status('d', null, 'dns')] }, null);
    expect(keys('one')).toEqual(['a', 'b', 'c']);
    expect(inventory.count('kv')).toBe(2);
  });
});

test('an object is a site’s own once it was observed as the site’s own, or applied', () => {
  inventory.record('kv', [seen('seen', ours('one')), seen('foreign', { kind: 'foreign', by: 'x' })], null);
  const resources = [status('applied', 'h1'), status('open', null), status('applied', 'h1', 'dns')];
  inventory.settle({ site: 'one', resources }, null);
  const has = (key: string, site = 'one') => inventory.has({ target: 'kv', site, key });
  expect(['seen', 'applied', 'foreign', 'open', 'unknown'].map((key) => has(key))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(has('seen', 'two')).toBe(false);
});

describe('a change', () => {
  const known = [{ site: 'one', resources: [status('a', 'h1'), status('b', null)] }];
  test.each([
    ['the applied content', { desired: resource('one', 'a') }, true],
    ['other content', { desired: resource('one', 'a', { hash: 'h2' }) }, false],
    ['no content (a delete)', {}, false],
    ['an object that was never applied', { key: 'b', desired: resource('one', 'b') }, false],
    ['another target', { target: 'dns', desired: resource('one', 'a') }, false],
    ['another site', { site: 'two', desired: resource('two', 'a') }, false],
  ] as const)('with %s was applied before: $2', (_what, extra, expected) => {
    const one = { ...change('one', 'a'), ...extra };
    expect(new Inventory(known).wasApplied(one)).toBe(expected);
  });

  test('of a forgotten site was not applied', () => {
    inventory = new Inventory(known);
    inventory.forget('one');
    expect(inventory.wasApplied(change('one', 'a', { desired: resource('one', 'a') }))).toBe(false);
  });
});

test('a site is converged to what was settled last, until it is outdated or forgotten', () => {
  const [first, second] = [desiredSite('one'), desiredSite('one')];
  expect(new Inventory([{ site: 'one', resources: [] }]).convergedTo('one')).toBeNull();
  const settle = (desired: typeof first | null) => inventory.settle({ site: 'one', resources: [] }, desired);
  settle(first);
  expect(inventory.convergedTo('one')).toBe(first);
  settle(second);
  expect(inventory.convergedTo('one')).toBe(second);
  settle(null);
  expect(inventory.convergedTo('one')).toBeNull();
  for (const end of ['outdate', 'forget'] as const) {
    settle(first);
    inventory[end]('one');
    expect(inventory.convergedTo('one')).toBeNull();
  }
});
