import { describe, expect, test } from 'vitest';
import { consentRules, decideConsent } from '../../edge/consent.ts';
import type { ConsentMode, ConsentSettings } from '../../plugins/document.ts';

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
    [
      'required',
      false,
      { ad_user_data: granted, ad_personalization: granted },
      { analytics: false, ads: false },
    ],
    ['opt_out', false, { ad_user_data: denied, ad_personalization: denied }, { analytics: true, ads: true }],
    ['required', true, { analytics_storage: granted, ad_storage: granted }, { analytics: false, ads: false }],
  ])('mode %s, Sec-GPC %s, choices %j: %j', (mode, gpc, choices, { analytics, ads }) => {
    const consent = decideConsent(mode, gpc, choices);
    expect(consent.identify).toBe(analytics || ads);
    expect(consent.isDenied).toBe(gpc || [choices.analytics_storage, choices.ad_storage].includes(denied));
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

  test.each<[ConsentMode, boolean, Choices, [boolean, boolean]]>([
    ['opt_out', false, {}, [true, true]],
    ['opt_out', false, { ad_user_data: denied }, [false, true]],
    ['opt_out', false, { ad_storage: denied }, [true, true]],
    ['opt_out', true, { ad_user_data: granted }, [false, false]],
    ['required', false, { ad_storage: granted }, [false, false]],
    ['required', false, { ad_personalization: granted }, [false, true]],
  ])('mode %s, Sec-GPC %s, choices %j: data and personalization %j', (mode, gpc, choices, expected) => {
    const { adUserData, adPersonalization } = decideConsent(mode, gpc, choices);
    expect([adUserData, adPersonalization]).toEqual(expected);
  });
});

describe('consentRules', () => {
  const settings: ConsentSettings = {
    consent: 'opt_out',
    regions: [
      { places: ['DE', 'AT'], consent: 'required', consentMode: 'basic' },
      { places: ['US-CA', 'US-CO'], fallback: 'none' },
      { places: ['US'], consentMode: 'basic' },
    ],
  };
  const own = { consent: 'opt_out', consentMode: 'advanced', fallback: 'vendor' };

  test.each([
    ['a place without rules of its own', 'FR', null, own],
    ['a country', 'DE', 'BY', { ...own, consent: 'required', consentMode: 'basic' }],
    ['a country, its part unknown', 'AT', null, { ...own, consent: 'required', consentMode: 'basic' }],
    [
      'a part of a country, which takes precedence over the country',
      'US',
      'CA',
      { ...own, fallback: 'none' },
    ],
    ['a part without rules, in a country with rules', 'US', 'NY', { ...own, consentMode: 'basic' }],
    ['an unknown part (the strictest apply)', 'US', null, { ...own, consentMode: 'basic', fallback: 'none' }],
    [
      'an unknown country (the strictest of all apply)',
      null,
      null,
      { consent: 'required', consentMode: 'basic', fallback: 'none' },
    ],
  ])('for %s are $3', (_name, country, region, expected) => {
    expect(consentRules(settings, { country, region })).toEqual({ ...expected, maxDays: 395 });
  });

  test('what is left out has its default, in unknown places too', () => {
    const rules = consentRules({ consent: 'required' }, { country: null, region: null });
    expect(rules).toEqual({ consent: 'required', consentMode: 'advanced', fallback: 'vendor', maxDays: 395 });
  });

  test('a region without a stricter rule does not loosen the rules of an unknown place', () => {
    const strict: ConsentSettings = {
      consent: 'required',
      consentMode: 'basic',
      consentMaxDays: 90,
      regions: [{ places: ['US'], consent: 'opt_out', consentMode: 'advanced' }],
    };
    expect(consentRules(strict, { country: null, region: null })).toMatchObject({
      consent: 'required',
      consentMode: 'basic',
      maxDays: 90,
    });
    expect(consentRules(strict, { country: 'US', region: 'TX' })).toMatchObject({ consent: 'opt_out' });
  });
});
