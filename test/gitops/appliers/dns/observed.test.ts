import { expect, test } from 'vitest';
import { formatMark } from '../../../../base/ownership.ts';
import { DNS, desiredRecords } from '../../../../gitops/appliers/dns/desired.ts';
import { type ListedRecord, observedRecords } from '../../../../gitops/appliers/dns/observed.ts';
import { planResources } from '../../../../gitops/appliers/plan.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const desired = desiredRecords(loadedManifest(), { hostAddress: '198.51.100.4' });
const record = (id: string, comment: string | null): ListedRecord => ({
  id,
  name: 'acme-shop-origin.example.net',
  type: 'A',
  content: '198.51.100.9',
  ttl: 1,
  proxied: false,
  comment,
});
const moved = record('moved', 'tgy1 test tag-2 acme-shop 0011aabb');

test.each<[string, readonly ListedRecord[], 'update' | 'conflict']>([
  ['another host made for the site', [moved], 'update'],
  ['another host made for another site', [record('other', 'tgy1 test tag-2 other 0011aabb')], 'conflict'],
  ['another instance made', [record('theirs', 'tgy1 prod tag-2 acme-shop 0011aabb')], 'conflict'],
  ['comes after one without a mark in the list', [record('strange', null), moved], 'conflict'],
  ['comes before one without a mark in the list', [moved, record('strange', null)], 'conflict'],
])('a record that %s: $2', (_what, listed, outcome) => {
  const identity = { instance: 'test', host: 'tag-1' };
  const { changes, conflicts } = planResources(desired, observedRecords(listed, desired, identity), DNS);
  const key = 'acme-shop-origin.example.net/A';
  const change = changes.find((one) => one.key === key);
  expect(conflicts.map((one) => one.key)).toEqual(outcome === 'conflict' ? [key] : []);
  expect(change?.op).toBe(outcome === 'update' ? 'update' : undefined);
  if (outcome === 'update') expect(change?.observed?.ref).toEqual({ keep: 'moved', surplus: [] });
});

test('an edited record has its present content as `found`; an unchanged record has none', () => {
  const identity = { instance: 'test', host: 'tag-1' };
  const origin = desired.find(({ key }) => key === 'acme-shop-origin.example.net/A');
  const comment = formatMark(identity, 'acme-shop', origin?.hash ?? '');
  const [edited] = observedRecords([record('moved', comment)], desired, identity);
  expect(edited).toMatchObject({ hash: null, found: 'acme-shop-origin.example.net A 198.51.100.9' });
  const [same] = observedRecords(
    [{ ...record('same', comment), content: '198.51.100.4' }],
    desired,
    identity,
  );
  expect(same?.hash).not.toBeNull();
  expect(same).not.toHaveProperty('found');
});
