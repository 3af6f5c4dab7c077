import { describe, expect, test } from 'vitest';
import { MANIFEST_VERSION } from '../../../sites/manifest/schema.ts';
import { UPGRADES, type Upgrade, upgradeManifest } from '../../../sites/manifest/upgrades.ts';

/** Two invented upgrades: one renames a key, the next one makes it a list. */
const upgrades: Upgrade[] = [
  ({ client, ...rest }) => ({ ...rest, owner: client }),
  ({ owner, ...rest }) => ({ ...rest, owners: [owner] }),
];

describe('the upgrade of a manifest', () => {
  test.each([
    ['the first', { version: 1, client: 'a', site: 's' }],
    ['the one before', { version: 2, owner: 'a', site: 's' }],
    ['the newest', { version: 3, owners: ['a'], site: 's' }],
  ])('results in the newest version, from %s', (_which, manifest) => {
    expect(upgradeManifest(manifest, upgrades)).toEqual({ version: 3, owners: ['a'], site: 's' });
  });

  test.each([
    ['a text'],
    [null],
    [[{ version: 1 }]],
    [{ version: '1' }],
    [{}],
    [{ version: 0 }],
    [{ version: 4 }],
  ])('returns a value without a known version unchanged: %j', (value) => {
    expect(upgradeManifest(value, upgrades)).toEqual(value);
  });

  test('exists from each version to the next', () => {
    expect(UPGRADES).toHaveLength(MANIFEST_VERSION - 1);
  });
});
