import { describe, expect, test } from 'vitest';
import {
  containerName,
  desiredContainers,
  isOfSamePlace,
  keyOfName,
} from '../../../../gitops/appliers/containers/desired.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { Secret } from '../../../../sites/manifest/secrets.ts';
import { Slots } from '../../../../sites/manifest/slots.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const SETTINGS = { slots: new Slots('127.77'), originPort: 8443 };
const desired = (manifest: LoadedManifest, settings = {}) =>
  desiredContainers(manifest, { ...SETTINGS, ...settings });

describe('the containers of a manifest', () => {
  test('are its replicas and one preview server, each at a slot of its own', () => {
    const manifest = loadedManifest('acme-shop', 0, { resources: { processing: { replicas: 2 } } });
    const resources = desired(manifest);
    expect(resources.map(({ key }) => key.replace(/[0-9a-f]{8}$/, 'HASH'))).toEqual([
      'acme-shop/processing/0/HASH',
      'acme-shop/processing/1/HASH',
      'acme-shop/preview/0/HASH',
    ]);
    const slots = resources.map(({ spec }) => `${spec.address}:${spec.port}`);
    expect(new Set(slots).size).toBe(3);
    for (const slot of slots) expect(slot).toMatch(/^127\.77\.\d+\.\d+:2000[01]$/);
    expect(resources[0]?.summary).toBe(
      `run acme-shop processing 0 of sha256:aaaaaaaaaaaa on ${slots[0]} (512m, 1 CPU)`,
    );
  });

  const changes: [what: string, (manifest: LoadedManifest) => LoadedManifest, touched: number[]][] = [
    ['another image', (m) => ({ ...m, image: `sha256:${'b'.repeat(64)}` }), [0, 1]],
    ['another config', (m) => ({ ...m, config: new Secret('other') }), [0, 1]],
    ['another port of the preview', (m) => ({ ...m, ports: { ...m.ports, preview: 20009 } }), [1]],
    [
      'another preview hostname',
      (m) => ({ ...m, hostnames: { ...m.hostnames, preview: 'other.example.net' } }),
      [0],
    ],
    ['another name', (m) => ({ ...m, name: 'Renamed' }), []],
    ['other features', (m) => ({ ...m, features: { ...m.features, multi_domain: true } }), []],
  ];
  test.each(changes)('have new keys exactly if they use what has changed: %s', (_what, change, touched) => {
    const manifest = loadedManifest();
    const before = desired(manifest).map(({ key }) => key);
    const after = desired(change(manifest)).map(({ key }) => key);
    const moved = before.flatMap((key, index) => (after[index] === key ? [] : [index]));
    expect(moved).toEqual(touched);
  });

  test('change with the edition, except for a preview server on demand', () => {
    const keys = (edition: string, onDemand: boolean) =>
      desired(loadedManifest('acme-shop', 0, { resources: { preview: { onDemand } } }), {
        edition: () => edition,
      }).map(({ key }) => key);
    const kept = (onDemand: boolean) =>
      keys('1', onDemand).filter((key) => keys('2', onDemand).includes(key));
    expect(kept(false)).toEqual([]);
    expect(kept(true)).toEqual([expect.stringContaining('/preview/')]);
  });

  test('are bound at their slot, except on demand, where a port gate listens at the slot', () => {
    const manifest = loadedManifest('acme-shop', 0, { resources: { preview: { onDemand: true } } });
    const [processing, preview] = desired(manifest).map(({ spec }) => spec);
    expect(processing?.boundAddress).toBe(processing?.address);
    expect(preview?.boundAddress).toMatch(/^127\.77\./);
    expect(preview?.boundAddress).not.toBe(preview?.address);
    expect(desired(manifest)[1]?.summary).toContain('on demand');
  });

  test.each([
    ['the CA', { caFile: '/etc/ca.pem' }],
    ['the loopback range', { slots: new Slots('127.78') }],
  ])('have another hash and the same keys with another host setting: %s', (_what, settings) => {
    const [before, after] = [desired(loadedManifest()), desired(loadedManifest(), settings)];
    expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
    after.forEach(({ hash }, index) => {
      expect(hash).not.toBe(before[index]?.hash);
    });
  });

  test('have names from which their keys are read back, even if the site’s name contains dashes', () => {
    for (const { key, spec } of desired(loadedManifest('a-preview-0-b'))) {
      const name = containerName('demo-1', spec);
      expect(name).toMatch(/^tagyard-demo-1-a-preview-0-b-(processing|preview)-0-[0-9a-f]{8}$/);
      expect(keyOfName('demo-1', name)).toBe(key);
    }
  });

  test('recognize other versions of themselves by name', () => {
    const [spec, ...rest] = desired(
      loadedManifest('acme', 0, { resources: { processing: { replicas: 2 } } }),
    ).map((one) => one.spec);
    if (spec === undefined) throw new Error('there is none');
    const name = (change: object) => containerName('demo', { ...spec, ...change });
    expect(isOfSamePlace('demo', name({ hash: 'ffffffffffff' }), spec)).toBe(true);
    expect(isOfSamePlace('demo', name({}), spec)).toBe(false);
    expect(isOfSamePlace('demo', name({ site: 'other', hash: 'ffffffffffff' }), spec)).toBe(false);
    for (const other of rest) expect(isOfSamePlace('demo', containerName('demo', other), spec)).toBe(false);
  });

  test.each(['other', 'tagyard-demo-1-shop', 'tagyard-demo-2-shop-preview-0-0123abcd'])(
    'are not recognized by the name %s',
    (name) => {
      expect(keyOfName('demo-1', name)).toBeNull();
    },
  );
});
