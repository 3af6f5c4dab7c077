import { expect, test } from 'vitest';
import { type ManifestView, withoutSecrets } from '../../../management/db/manifest-view.ts';
import { presentContainer } from '../../../management/view/present.ts';
import { type ManifestInput, manifestSchema } from '../../../sites/manifest/schema.ts';
import { manifestInput } from '../../support/manifest.ts';

const page = (domain: string, number: number) => ({
  domain,
  webTagId: 'GTM-ABC1234',
  token: `ct_container0tok000${number}`,
});

const viewOf = (extra: Partial<ManifestInput>): ManifestView =>
  withoutSecrets(manifestSchema.parse(manifestInput('acme', 0, extra)));

function present(manifest: ManifestView) {
  const settings = {
    edgePublicUrl: 'https://{host}',
    customPublicUrl: 'https://{host}:8443',
    vendorUrl: 'https://vendor.example',
    domainProof: 'off' as const,
    forwarderKey: null,
  };
  return presentContainer(
    {
      id: manifest.container,
      seq: '1',
      site_id: manifest.site,
      client_id: manifest.client,
      status: 'active',
      status_reason: null,
      status_detail: null,
      health: 'healthy',
      host_reason: null,
      host_detail: null,
      host_refusal: null,
      dns: {},
      first_visit_at: null,
      state: {
        name: 'serving',
        since: '2026-01-01T00:00:00.000Z',
        sentence: '',
        remedy: null,
        detail: null,
        also: [],
      },
      manifest,
      revision: null,
      created_at: new Date(0),
      updated_at: new Date(0),
      operation: null,
    },
    settings,
  );
}

/** Where the snippet of each domain loads from. */
function loadersOf(extra: Partial<ManifestInput>): (string | undefined)[] {
  const view = present(viewOf(extra));
  expect(view.snippet).toBe(view.domains[0]?.snippet);
  return view.domains.map(({ snippet }) => /"(https:[^"]*)\/l\/lt_/.exec(snippet)?.[1]);
}

const domains = [page('shop.acme.example', 1), page('acme-outlet.example', 2)];
const EDGE = 'https://acme.example.net';

test.each<[string, string[], string[]]>([
  ['no custom domain', [], [EDGE, EDGE]],
  ['one of the first domain', ['m.shop.acme.example'], ['https://m.shop.acme.example:8443', EDGE]],
  ['one beside the first domain', ['m.acme.example'], ['https://m.acme.example:8443', EDGE]],
  ['one of the second domain', ['m.acme-outlet.example'], [EDGE, 'https://m.acme-outlet.example:8443']],
  [
    'several of the first domain: the first one below it',
    ['m.acme.example', 'm.shop.acme.example', 'n.shop.acme.example'],
    ['https://m.shop.acme.example:8443', EDGE],
  ],
])('the snippet loads from the best address of its domain: %s', (_what, customDomains, expected) => {
  expect(loadersOf({ domains, customDomains })).toEqual(expected);
});

test('a manifest recorded before there were rules of consent gets the defaults of these', () => {
  const { consentMode: _, fallback: __, regions: ___, consentMaxDays: ____, ...old } = viewOf({});
  expect(present(old as ManifestView)).toMatchObject({
    consent: 'opt_out',
    consentMode: 'advanced',
    fallback: 'vendor',
    regions: [],
    consentMaxDays: 395,
  });
});
