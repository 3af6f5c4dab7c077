import { expect, test } from 'vitest';
import { SITE_CHECKS } from '../../../edge/verification/checks/index.ts';
import type { SiteDescription } from '../../../edge/verification/contract.ts';
import { describeSite } from '../../../sites/manifest/description.ts';
import { loadedManifest } from '../../support/manifest.ts';

const describe = (rules: object) =>
  describeSite(loadedManifest('acme', 0, rules), { edgePublicUrl: 'https://{host}', tlsPort: 443 });

const check = (site: SiteDescription) =>
  SITE_CHECKS.consent({
    site,
    host: null,
    hostProblem: null,
    now: 0,
    visit: () => Promise.reject(new Error()),
    scriptsByPlace: false,
  });

const required = { consent: 'required' };

test.each([
  [{}, 'everywhere'],
  [{ regions: [{ places: ['DE', 'FR'], ...required }, { places: ['US'] }] }, 'everywhere but in DE, FR'],
  [{ ...required, regions: [{ places: ['US'], consent: 'opt_out' }] }, 'in US'],
  [{ regions: [{ places: ['DE'], consentMode: 'basic' }] }, 'everywhere but in DE'],
  [
    { regions: [{ places: ['DE', 'US'], ...required }, { places: ['US-CA', 'US-NY'] }] },
    'everywhere but in DE, US (except US-CA, US-NY)',
  ],
  [{ regions: [{ places: ['US-CA', 'US', 'DE-BY'], ...required }] }, 'everywhere but in US, DE-BY'],
  [
    { ...required, regions: [{ places: ['US'], consent: 'opt_out' }, { places: ['US-CA'] }] },
    'in US (except US-CA)',
  ],
])(
  'the rules %j identify visitors %s before they choose: the check says so, with advice',
  async (rules, where) => {
    expect(await check(describe(rules))).toEqual([
      {
        subject: null,
        status: 'passed',
        detail: `visitors are identified before they choose: ${where}`,
        fix: expect.stringContaining('consent: required'),
      },
    ]);
  },
);

test.each([
  required,
  { consentMode: 'basic' },
  { ...required, regions: [{ places: ['US'], fallback: 'none' }] },
])('the rules %j identify no visitor before a choice', async (rules) => {
  expect(await check(describe(rules))).toMatchObject([{ status: 'passed', fix: null }]);
});

test('the check is skipped for a host of an older release, which doesn’t state the rules', async () => {
  const { identifies: _, ...old } = describe({});
  expect(await check(old)).toMatchObject([{ status: 'skipped' }]);
});
