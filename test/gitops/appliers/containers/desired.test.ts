import { describe, expect, test } from 'vitest';
import {
  containerName,
  desiredContainers,
  keyOfName,
} from '../../../../gitops/appliers/containers/desired.ts';
import type { LoadedManifest } from '../../../../gitops/manifest/containers.ts';
import { Secret } from '../../../../gitops/manifest/secrets.ts';
import { loadedManifest } from '../../../fixtures/manifest.ts';

const SETTINGS = { loopbackSubnet: '127.77', originPort: 8443 };
const desired = (manifest: LoadedManifest, settings = {}) =>
  desiredContainers(manifest, { ...SETTINGS, ...settings });

describe('the containers that a manifest asks for', () => {
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
  test.each(changes)('%s makes new ones exactly of those that it concerns', (_what, change, touched) => {
    const manifest = loadedManifest();
    const before = desired(manifest).map(({ key }) => key);
    const after = desired(change(manifest)).map(({ key }) => key);
    const moved = before.flatMap((key, index) => (after[index] === key ? [] : [index]));
    expect(moved).toEqual(touched);
  });

  test.each([
    ['the CA', { caFile: '/etc/ca.pem' }],
    ['the loopback range', { loopbackSubnet: '127.78' }],
  ])('what the host alone decides (%s) replaces them where they stand', (_what, settings) => {
    const [before, after] = [desired(loadedManifest()), desired(loadedManifest(), settings)];
    expect(after.map(({ key }) => key)).toEqual(before.map(({ key }) => key));
    after.forEach(({ hash }, index) => {
      expect(hash).not.toBe(before[index]?.hash);
    });
  });

  test('have names that lead back to their keys, whatever dashes the site has', () => {
    for (const { key, spec } of desired(loadedManifest('a-preview-0-b'))) {
      const name = containerName('demo-1', spec);
      expect(name).toMatch(/^tagyard-demo-1-a-preview-0-b-(processing|preview)-0-[0-9a-f]{8}$/);
      expect(keyOfName('demo-1', name)).toBe(key);
    }
  });

  test.each(['other', 'tagyard-demo-1-shop', 'tagyard-demo-2-shop-preview-0-0123abcd'])(
    '%s is no name of ours',
    (name) => {
      expect(keyOfName('demo-1', name)).toBeNull();
    },
  );
});
