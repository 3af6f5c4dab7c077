import type { Consent } from '../plugins/contract.ts';
import type { ConsentMode } from '../plugins/document.ts';

type Choices = Readonly<Record<string, 'granted' | 'denied'>>;

/**
 * Decides which of the two purposes, analytics and ads, a visitor allows. `Sec-GPC: 1` denies both. A denial always
 * counts. Without a choice, the site's mode decides. A cookie of unknown purpose needs consent to both.
 */
export function decideConsent(mode: ConsentMode, gpc: boolean, choices: Choices): Consent {
  const allowed = (type: 'analytics_storage' | 'ad_storage') => {
    const choice = choices[type];
    return !gpc && (mode === 'required' ? choice === 'granted' : choice !== 'denied');
  };
  const analytics = allowed('analytics_storage');
  const ads = allowed('ad_storage');
  return {
    identify: analytics || ads,
    allows(cookieName) {
      if (/^(?:_ga(?:$|_)|FPID$|FPLC$)/.test(cookieName)) return analytics;
      if (/^(?:_fbp$|_fbc$|_gcl_|FPAU$|FPGCL)/.test(cookieName)) return ads;
      return analytics && ads;
    },
  };
}
