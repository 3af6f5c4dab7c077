import { expect, test } from 'vitest';
import { proxyResources } from '../../../gitops/appliers/proxy/desired.ts';
import { wantedNames } from '../../../gitops/certificates/names.ts';
import { contestedNames } from '../../../gitops/desired/claims.ts';
import type { DesiredState } from '../../../gitops/desired/desired-state.ts';
import { resolveNames } from '../../../gitops/host-report/names.ts';
import { describeSite } from '../../../sites/manifest/description.ts';
import { kvDocuments } from '../../../sites/manifest/documents.ts';
import { formatManifest, parseManifest } from '../../../sites/manifest/load.ts';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { loadedManifest, manifestInput } from '../../support/manifest.ts';

const HASH = 'a'.repeat(64);
const sameOrigin = (path: string) => ({ path, forwarder: { generation: 1, tokenHash: HASH } });
/** Two registrable domains with a prefix and a custom domain each; in `half`, the second one is not proven. */
const EXTRA: Partial<ManifestInput> = {
  domains: [
    {
      domain: 'acme.example',
      webTagId: 'GTM-AAAA',
      token: 'ct_1111111111111111',
      sameOrigin: sameOrigin('/m3trics1'),
    },
    {
      domain: 'shop.other.example',
      webTagId: 'GTM-BBBB',
      token: 'ct_2222222222222222',
      sameOrigin: sameOrigin('/m3trics2'),
    },
  ],
  customDomains: ['data.acme.example', 'data.other.example'],
  features: { multi_domain: true },
  tls: { mode: 'acme' },
};
const half = loadedManifest('acme', 1, { ...EXTRA, unproven: ['other.example'] });
const whole = loadedManifest('acme', 1, EXTRA);
const settings = { slots: new Slots('127.77'), originPort: 443 };

test('the edge knows the pages of an unproven domain, but no prefix and no first-party host of it', () => {
  const domains = (manifest: typeof half) =>
    kvDocuments(manifest, { originPort: 443 }).flatMap(({ value }) =>
      'proxyPaths' in value ? value.domains : [],
    );
  const [acme, other] = domains(half);
  expect(acme).toEqual(domains(whole)[0]);
  expect(acme).toMatchObject({ active: true, sameOrigin: { path: '/m3trics1' } });
  expect(acme).not.toHaveProperty('unproven');
  expect(other).toEqual({
    domain: 'shop.other.example',
    webTagId: 'GTM-BBBB',
    token: 'ct_2222222222222222',
    cookieDomain: 'other.example',
    active: true,
    unproven: true,
  });
});

test('a custom domain below an unproven domain has no vhost, no certificate and no check', async () => {
  const served = (manifest: typeof half) => proxyResources(manifest, settings).map(({ key }) => key);
  expect(served(half)).toEqual(['acme', 'acme/data.acme.example']);
  expect(served(whole)).toEqual(['acme', 'acme/data.acme.example', 'acme/data.other.example']);
  const state = { sites: new Map([['acme', { site: 'acme', blob: '', manifest: half, stalled: null }]]) };
  const { names } = wantedNames(state as never as DesiredState, 'acme');
  expect([...names.keys()]).not.toContain('data.other.example');
  expect([...names.keys()]).toContain('data.acme.example');
  const site = describeSite(half, { edgePublicUrl: 'https://{host}', tlsPort: 443 });
  expect(site.customDomains).toEqual(['https://data.acme.example']);
  expect(site.domains.map((one) => one.sameOrigin)).toEqual(['/m3trics1', undefined]);
  const lookup = { addresses: async () => ['192.0.2.1'], alias: async () => null };
  const to = { hostAddresses: ['192.0.2.1'], otherAddresses: [], edgeTarget: undefined };
  const kinds = (await resolveNames(half, to, lookup)).map(({ kind, name }) => `${kind} ${name}`);
  expect(kinds).not.toContain('custom data.other.example');
  expect(kinds).toContain('page shop.other.example');
});

test('the names of an unproven domain are no claims: a site that has proven them is not refused', () => {
  const rival = loadedManifest('rival', 2, {
    client: '7c9e6679-7425-40de-944b-e07fc1f90aff',
    domains: [{ domain: 'shop.other.example', webTagId: 'GTM-CCCC', token: 'ct_3333333333333333' }],
    customDomains: ['data.other.example'],
  });
  expect(contestedNames([half, rival]).size).toBe(0);
  expect([...contestedNames([whole, rival]).keys()].sort()).toEqual(['acme', 'rival']);
});

test('a manifest without `unproven` is written without it; each entry must be a registrable domain', () => {
  expect(formatManifest(manifestInput('acme', 1, EXTRA))).not.toContain('unproven');
  const text = formatManifest(manifestInput('acme', 1, { ...EXTRA, unproven: ['other.example'] }));
  expect(text).toContain('unproven:\n  - other.example\n');
  const wrong = parseManifest(
    text.replace('  - other.example\nimage', '  - shop.other.example\nimage'),
    'acme.yaml',
  );
  expect(wrong.ok ? [] : wrong.problems).toMatchObject([
    { path: 'unproven.0', message: 'must be a registrable domain: other.example' },
  ]);
});
