import { describe, expect, test } from 'vitest';
import { startOfSite, watched } from '../../../management/rollouts/judge.ts';
import { allWaves, nextWave } from '../../../management/rollouts/waves.ts';

const ready = { ready: true, reason: 'Ready', message: '' } as const;
const image = 'registry.example/gtm@sha256:new';

describe('a changed site', () => {
  test.each([
    ['pending', 'is ready, but the host has not read the commit', ready, false, false],
    ['pending', 'is ready with what was applied before', ready, true, false],
    ['pending', 'has failed before the commit', { ...ready, ready: false, reason: 'Failed' }, false, false],
    ['failed', 'fails with the commit', { ...ready, ready: false, reason: 'Failed' }, true, false],
    ['failed', 'is retried with the commit', { ...ready, ready: false, reason: 'Retrying' }, true, false],
    ['pending', 'progresses', { ...ready, ready: false, reason: 'Progressing' }, true, false],
    ['ready', 'is ready with the commit', ready, true, true],
    ['ready', 'needed no attempt', ready, false, true],
  ] as const)('is %s where it %s', (expected, _what, shown, isAttempted, isApplied) => {
    expect(watched({ shown, isAttempted, isApplied })).toBe(expected);
  });
});

describe('a site whose wave begins', () => {
  const site = {
    site: 'shop',
    status: 'active',
    manifest: { image: 'registry.example/gtm@sha256:old', suspend: false },
    shown: ready,
    history: [],
  } as const;
  const broken = { ...ready, ready: false, reason: 'Failed', message: 'no disk' } as const;
  test.each([
    ['is changed', site, 'changing', null],
    ['has the image', { ...site, manifest: { image, suspend: false } }, 'already', null],
    ['is unknown to the host', { ...site, shown: null }, 'skipped', 'not_ready'],
    ['is broken', { ...site, shown: broken }, 'skipped', 'not_ready'],
    [
      'is broken by an image',
      { ...site, shown: broken, history: [{ revision: 'r', subject: 'Change the image of shop' }] },
      'changing',
      null,
    ],
    ['is being created', { ...site, status: 'provisioning' }, 'skipped', 'not_live'],
    ['is suspended', { ...site, manifest: { ...site.manifest, suspend: true } }, 'skipped', 'suspended'],
  ] as const)('%s: its state is $2', (_what, before, state, reason) => {
    expect(startOfSite(before, image)).toMatchObject({ state, reason, fromImage: before.manifest.image });
  });
});

test('the waves shown after those that have begun are the ones that begin if no site fails', () => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'];
  const sites = names.map((site_id) => ({ site_id, state: 'pending' as const, wave: null }));
  expect(allWaves(sites, [1, 2]).map((wave) => wave.sites.map(({ site_id }) => site_id))).toEqual([
    ['a'],
    ['b', 'c'],
    ['d', 'e'],
    ['f'],
  ]);
  const begun = sites.map((site, index) =>
    index === 0 ? { ...site, state: 'skipped' as const, wave: 1 } : site,
  );
  expect(nextWave(begun, [1, 2])).toEqual(['b']);
  expect(allWaves(begun, [1, 2]).map(({ number, sites: own }) => [number, own.length])).toEqual([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
  ]);
  const failed = sites.map((site, index) =>
    index === 0 ? { ...site, state: 'failed' as const, wave: 1 } : site,
  );
  expect(nextWave(failed, [1, 2])).toEqual([]);
  expect(allWaves(failed, [1, 2])).toHaveLength(4);
});
