import { describe, expect, test } from 'vitest';
import { withoutSecrets } from '../../../management/db/manifest-view.ts';
import type { ContainerStatus } from '../../../management/lifecycle/status.ts';
import {
  decideProjection,
  describeRefusal,
  isDeleted,
  isDue,
  type KnownSite,
  removalObstacle,
} from '../../../management/sites/decision.ts';
import { findObstacle } from '../../../management/sites/project-site.ts';
import { formatManifest, type ParsedManifest, parseManifest } from '../../../sites/manifest/load.ts';
import { type ManifestInput, manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const parsed = (extra: Partial<ManifestInput> = {}): ParsedManifest =>
  parseManifest(formatManifest(manifestInput('acme-shop', 0, extra)), 'acme-shop.yaml');
const invalid = parseManifest('version: 1\nsite: acme-shop\n', 'acme-shop.yaml');
const id = manifestInput().container;

describe('a version of a site’s file', () => {
  const known = (status: ContainerStatus) => ({ id, status });
  test.each<[string, Pick<KnownSite, 'id' | 'status'> | undefined, ParsedManifest, string]>([
    ['of an unknown site', undefined, parsed(), 'adopt'],
    ['that is invalid, of an unknown site', undefined, invalid, 'ignore'],
    ['that is a tombstone, of an unknown site', undefined, parsed({ state: 'absent' }), 'remember'],
    ['that is a tombstone, of a removed site', known('removed'), parsed({ state: 'absent' }), 'remember'],
    ['that is a tombstone, of a live site', known('verified'), parsed({ state: 'absent' }), 'remove'],
    [
      'that is a tombstone, of a protected site',
      known('active'),
      parsed({ state: 'absent', protect: true }),
      'refuse',
    ],
    ['that is invalid', known('active'), invalid, 'refuse'],
    ['that names another container', { id: 'other', status: 'active' }, parsed(), 'refuse'],
    ['of a live site', known('active'), parsed(), 'edit'],
    ['of a site that is being created', known('provisioning'), parsed(), 'edit'],
    ['of a removed site', known('removed'), parsed(), 'restore'],
    ['of a site that is being removed', known('deprovisioning'), parsed(), 'restore'],
    ['of a failed site', known('failed'), parsed(), 'restore'],
  ])('%s: $3', (_what, site, version, decision) => {
    expect(decideProjection(site, version)).toBe(decision);
  });
});

test.each([
  ['of an unknown site', undefined, true],
  ['with the same text', { blob: 'a', reason: null, step: null }, false],
  ['with new text', { blob: 'b', reason: null, step: null }, true],
  ['with text that was refused before', { blob: 'a', reason: 'port_taken', step: null }, true],
  ['with the same text, after failed checks,', { blob: 'a', reason: 'checks_failed', step: null }, false],
  ['with new text, before an operation settles,', { blob: 'b', reason: null, step: 'commit' }, 'later'],
  ['with the same text, before an operation settles,', { blob: 'a', reason: null, step: 'commit' }, false],
  ['with new text, while the provisioner works,', { blob: 'b', reason: null, step: 'follow' }, true],
] as const)('a site’s file %s is due: $2', (_what, site, expected) => {
  expect(isDue(site, { blob: 'a' })).toBe(expected);
});

test.each<[string, Partial<KnownSite>, boolean]>([
  ['is live', {}, true],
  ['is removed already', { status: 'removed' }, false],
  ['was never accepted by the provisioner', { isRecorded: false }, false],
  ['is being withdrawn', { step: 'withdraw' }, false],
  ['waits for the provisioner', { step: 'follow' }, true],
])('a site without a file counts as deleted if it %s: $2', (_what, extra, expected) => {
  const site: KnownSite = {
    id,
    siteId: 'acme-shop',
    status: 'active',
    reason: null,
    detail: null,
    manifest: withoutSecrets(manifestSchema.parse(manifestInput())),
    revision: null,
    blob: 'a',
    isRecorded: true,
    step: null,
    ...extra,
  };
  expect(isDeleted(site)).toBe(expected);
});

test.each<[string, Parameters<typeof removalObstacle>[1], unknown]>([
  ['is proven', { isProven: true, detail: '', last: null }, null],
  ['is proven, and that had a tombstone,', absence({ state: 'absent', protect: true }), null],
  ['is proven, and that is protected,', absence({ protect: true }), expect.stringContaining('is protected')],
  ['is not proven', { isProven: false, detail: 'it was moved', last: null }, 'it was moved'],
  ['is unknown', undefined, expect.stringContaining('is unknown')],
])('the obstacle to the removal of a site whose absence %s is $2', (_what, found, expected) => {
  expect(removalObstacle('acme-shop', found)).toEqual(expected);
});

function absence(extra: Partial<ManifestInput>) {
  const last = manifestSchema.parse(manifestInput('acme-shop', 0, extra));
  return { isProven: true, detail: '', last };
}

test('a refusal names the file, and for an invalid manifest also line and key', () => {
  expect(describeRefusal('acme-shop.yaml', parsed())).toBe(
    'acme-shop.yaml: names a container other than that of this site',
  );
  expect(describeRefusal('acme-shop.yaml', parsed({ state: 'absent', protect: true }))).toContain(
    'set protect: false',
  );
  const broken = parseManifest('version: 1\ncolour: red\n', 'acme-shop.yaml');
  expect(describeRefusal('acme-shop.yaml', broken)).toContain('acme-shop.yaml:2: colour: unknown key');
  expect(describeRefusal('acme-shop.yaml', parseManifest('[]\n', 'acme-shop.yaml'))).toMatch(
    /^acme-shop\.yaml:1: \w/,
  );
});

test.each([
  [[], true, null],
  [[], false, { reason: 'port_taken', detail: 'another site holds port 20000 or 20001' }],
  [['a.example'], false, { reason: 'port_taken', detail: 'another site holds port 20000 or 20001' }],
  [
    ['a.example', 'b.example'],
    true,
    { reason: 'domain_in_use', detail: 'another site or client holds a.example, b.example' },
  ],
])(
  'with the contested names %j and the site holding its ports (%s), the obstacle is $2',
  (contested, holdsPorts, obstacle) => {
    expect(findObstacle(contested, holdsPorts, manifestInput())).toEqual(obstacle);
  },
);
