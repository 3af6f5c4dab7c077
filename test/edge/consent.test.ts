import { describe, expect, test } from 'vitest';
import { decideConsent } from '../../edge/consent.ts';
import type { ConsentMode } from '../../plugins/document.ts';

type Choices = Parameters<typeof decideConsent>[2];

const granted = 'granted';
const denied = 'denied';

describe('decideConsent', () => {
  test.each<[ConsentMode, boolean, Choices, { analytics: boolean; ads: boolean }]>([
    ['opt_out', false, {}, { analytics: true, ads: true }],
    ['opt_out', false, { analytics_storage: denied }, { analytics: false, ads: true }],
    ['opt_out', false, { ad_storage: denied }, { analytics: true, ads: false }],
    ['opt_out', false, { analytics_storage: denied, ad_storage: denied }, { analytics: false, ads: false }],
    ['opt_out', true, {}, { analytics: false, ads: false }],
    ['opt_out', true, { analytics_storage: granted, ad_storage: granted }, { analytics: false, ads: false }],
    ['required', false, {}, { analytics: false, ads: false }],
    ['required', false, { analytics_storage: granted }, { analytics: true, ads: false }],
    ['required', false, { ad_storage: granted }, { analytics: false, ads: true }],
    ['required', false, { analytics_storage: granted, ad_storage: granted }, { analytics: true, ads: true }],
    ['required', false, { functionality_storage: granted }, { analytics: false, ads: false }],
    ['required', true, { analytics_storage: granted, ad_storage: granted }, { analytics: false, ads: false }],
  ])('mode %s, Sec-GPC %s, choices %j: %j', (mode, gpc, choices, { analytics, ads }) => {
    const consent = decideConsent(mode, gpc, choices);
    expect(consent.identify).toBe(analytics || ads);
    for (const name of ['_ga', '_ga_ABC', 'FPID', 'FPLC']) expect(consent.allows(name)).toBe(analytics);
    for (const name of ['_fbp', '_fbc', '_gcl_au', 'FPAU', 'FPGCLAW']) expect(consent.allows(name)).toBe(ads);
  });

  test.each(['session', '_gat', '_gaX', 'x_ga', 'FPIDX', '_fbpx', 'FPAUX'])(
    'the cookie %s has no known purpose, so it needs consent to both purposes',
    (name) => {
      expect(decideConsent('opt_out', false, {}).allows(name)).toBe(true);
      expect(decideConsent('opt_out', false, { ad_storage: denied }).allows(name)).toBe(false);
      expect(decideConsent('opt_out', false, { analytics_storage: denied }).allows(name)).toBe(false);
    },
  );
});
