import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { type Draft, draftManifest, newToken } from '../../../management/containers/draft.ts';
import { manifestInput } from '../../support/manifest.ts';

const settings = {
  host: 'tag-1',
  image: `sha256:${'a'.repeat(64)}`,
  edgeDomain: 'edge.example.net',
  originDomain: 'origin.example.net',
  defaultConsent: 'opt_out' as const,
};

const draft: Draft = {
  id: '3f0a6679-7425-40de-944b-e07fc1f90000',
  clientId: '7c9e6679-7425-40de-944b-e07fc1f90ae7',
  name: 'Acme Shop',
  loaderToken: newToken('lt', randomBytes),
  domains: [{ domain: 'acme.example', webTagId: 'GTM-ABC1234', token: 'ct_0123456789abcdef' }],
  features: { multi_domain: true },
  modules: {},
  tls: { mode: 'files' as const },
  containerConfig: manifestInput().containerConfig,
};

test('a draft becomes a manifest with hostnames in the zones of the installation', () => {
  const manifest = draftManifest(draft, 'acme-shop', { processing: 20000, preview: 20001 }, settings);
  expect(manifest).toMatchObject({
    version: 1,
    site: 'acme-shop',
    client: draft.clientId,
    container: draft.id,
    host: 'tag-1',
    state: 'present',
    hostnames: {
      edge: 'acme-shop.edge.example.net',
      origin: 'acme-shop-origin.origin.example.net',
      preview: 'acme-shop-preview.origin.example.net',
    },
    ports: { processing: 20000, preview: 20001 },
    image: settings.image,
    domains: draft.domains,
    features: { multi_domain: true, cookie_restoration: false },
  });
  expect(manifest.loaderToken).toMatch(/^lt_[0-9a-f]{32}$/);
});

const ports = { processing: 20000, preview: 20001 };

test.each([
  ['opt_out', {}, { consent: 'opt_out', consentMode: 'advanced' }],
  ['required', {}, { consent: 'required', consentMode: 'basic' }],
  ['required', { consentMode: 'advanced' }, { consent: 'required', consentMode: 'advanced' }],
  ['opt_out', { consent: 'required' }, { consent: 'required', consentMode: 'advanced' }],
] as const)('DEFAULT_CONSENT=%s and the rules %j: %j', (defaultConsent, consent, expected) => {
  const own = { ...settings, defaultConsent };
  expect(draftManifest({ ...draft, ...consent }, 'acme-shop', ports, own)).toMatchObject(expected);
});

test('tokens are random and carry their prefix', () => {
  const tokens = Array.from({ length: 10 }, () => newToken('ct', randomBytes));
  expect(new Set(tokens).size).toBe(10);
  for (const token of tokens) expect(token).toMatch(/^ct_[0-9a-f]{32}$/);
});
