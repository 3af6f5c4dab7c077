import { type Consent, type ConsentChoices, type ConsentRules, consentState } from '../plugins/consent.ts';
import type { PluginContext } from '../plugins/contract.ts';
import type { ConsentMode, ConsentSettings } from '../plugins/document.ts';
import { ADS_COOKIE, ANALYTICS_COOKIE } from '../plugins/purposes.ts';

type Place = Pick<PluginContext['visitor'], 'country' | 'region'>;

/** The age, in days, from which a consent counts as none, if the site sets no other. 13 months, as for cookies. */
const MAX_DAYS = 395;

/**
 * The rules of consent for a visitor. A part of a country takes precedence over the country, and that over the site's
 * own rules. Where the place, or the part of the country, is unknown, the strictest of all possible rules apply.
 */
export function consentRules(settings: ConsentSettings, { country, region }: Place): ConsentRules {
  const { consent, consentMode = 'advanced', fallback = 'vendor' } = settings;
  const general = { consent, consentMode, fallback, maxDays: settings.consentMaxDays ?? MAX_DAYS };
  const entries = settings.regions ?? [];
  if (entries.length === 0) return general;
  const at = (isThere: (place: string) => boolean): ConsentRules[] =>
    entries
      .filter(({ places }) => places.some(isThere))
      .map(
        ({ consent = general.consent, consentMode = general.consentMode, fallback = general.fallback }) => ({
          ...general,
          consent,
          consentMode,
          fallback,
        }),
      );
  if (country === null) return strictest([general, ...at(() => true)]);
  const [ofCountry = general] = at((place) => place === country);
  const parts = at((place) =>
    region === null ? place.startsWith(`${country}-`) : place === `${country}-${region}`,
  );
  if (region !== null) return parts[0] ?? ofCountry;
  return strictest([ofCountry, ...parts]);
}

function strictest(all: readonly ConsentRules[]): ConsentRules {
  return all.reduce((strict, rules) => ({
    consent: rules.consent === 'required' ? rules.consent : strict.consent,
    consentMode: rules.consentMode === 'basic' ? rules.consentMode : strict.consentMode,
    fallback: rules.fallback === 'none' ? rules.fallback : strict.fallback,
    maxDays: strict.maxDays,
  }));
}

/**
 * Decides what a visitor allows. The purposes with storage are analytics and ads. `Sec-GPC: 1` denies all. A denial
 * always counts. Without a choice, the site's mode decides. A cookie of unknown purpose needs consent to both.
 */
export function decideConsent(mode: ConsentMode, gpc: boolean, choices: ConsentChoices): Consent {
  const allowed = (type: keyof ConsentChoices) => {
    const choice = choices[type];
    return !gpc && (mode === 'required' ? choice === 'granted' : choice !== 'denied');
  };
  const denied = [choices.analytics_storage, choices.ad_storage].includes('denied');
  const analytics = allowed('analytics_storage');
  const ads = allowed('ad_storage');
  return {
    identify: analytics || ads,
    isDenied: gpc || denied,
    analytics,
    state: consentState(ads, analytics),
    adUserData: allowed('ad_user_data'),
    adPersonalization: allowed('ad_personalization'),
    allows(cookieName) {
      if (ANALYTICS_COOKIE.test(cookieName)) return analytics;
      if (ADS_COOKIE.test(cookieName)) return ads;
      return analytics && ads;
    },
  };
}
