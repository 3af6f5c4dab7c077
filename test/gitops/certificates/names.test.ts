import { describe, expect, test } from 'vitest';
import { wantedNames } from '../../../gitops/certificates/names.ts';
import type { DesiredState } from '../../../gitops/desired/desired-state.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { loadedManifest } from '../../support/manifest.ts';

const ADDRESSES = ['192.0.2.1'];
const desired = (manifests: Record<string, LoadedManifest | null>): DesiredState => ({
  revision: 'x',
  sites: new Map(
    Object.entries(manifests).map(([site, manifest]) => [
      site,
      { site, blob: site, manifest, stalled: null },
    ]),
  ),
  onOtherHosts: new Map(),
});
const acme = (extra: object = {}) =>
  loadedManifest('acme-shop', 0, {
    tls: { mode: 'acme' },
    customDomains: ['metrics.acme-shop.example'],
    ...extra,
  });

describe('the names that need a certificate', () => {
  test('are the site’s own and its custom domains, each with what it must resolve to', () => {
    const { names, unknown } = wantedNames(desired({ 'acme-shop': acme() }), 'acme', ADDRESSES);
    expect([...names.values()]).toEqual([
      {
        host: 'acme-shop-origin.example.net',
        site: 'acme-shop',
        own: true,
        expected: { addresses: ADDRESSES, alias: null },
      },
      {
        host: 'acme-shop-preview.example.net',
        site: 'acme-shop',
        own: true,
        expected: { addresses: ADDRESSES, alias: null },
      },
      {
        host: 'metrics.acme-shop.example',
        site: 'acme-shop',
        own: false,
        expected: { addresses: ADDRESSES, alias: 'acme-shop-origin.example.net' },
      },
    ]);
    expect(unknown.size).toBe(0);
  });

  test('are none for another tls mode, a removed site and an unknown manifest', () => {
    const state = desired({ 'acme-shop': acme(), broken: null });
    expect(wantedNames(state, 'files').names.size).toBe(0);
    expect([...wantedNames(state, 'acme').unknown]).toEqual(['broken']);
    const removed = desired({ 'acme-shop': acme({ state: 'absent' }) });
    expect(wantedNames(removed, 'acme').names.size).toBe(0);
  });
});
