import * as z from 'zod/mini';
import type { ConsentMode, FALLBACKS, LOADING_MODES } from './document.ts';

const choice = z.optional(z.literal(['granted', 'denied']));

/**
 * The visitor's choices on the page, by Google's names of purposes, as a request's body contains them. Other names are
 * dropped.
 */
export const consentChoices = z.optional(
  z.object({
    analytics_storage: choice,
    ad_storage: choice,
    ad_user_data: choice,
    ad_personalization: choice,
  }),
);
export type ConsentChoices = NonNullable<z.infer<typeof consentChoices>>;

/** A site's rules of consent for the visitor's place. */
export interface ConsentRules {
  readonly consent: ConsentMode;
  readonly consentMode: (typeof LOADING_MODES)[number];
  readonly fallback: (typeof FALLBACKS)[number];
  /** The age, in days, from which a consent counts as none. */
  readonly maxDays: number;
}

/** How choices are judged under these rules: if nothing may load before a grant, only a grant allows anything. */
export const modeOf = ({ consent, consentMode }: ConsentRules): ConsentMode =>
  consentMode === 'basic' ? 'required' : consent;

/** For which purposes a visitor allows storage. */
export type ConsentState = 'all' | 'analytics' | 'ads' | 'none';

export function consentState(ads: boolean, analytics: boolean): ConsentState {
  if (ads) return analytics ? 'all' : 'ads';
  return analytics ? 'analytics' : 'none';
}

/** What the visitor's choices, `Sec-GPC` and the site's consent mode allow. */
export interface Consent {
  /** Whether storage is allowed for at least one purpose. Otherwise the visitor gets no id. */
  readonly identify: boolean;
  /** Whether storage is denied for a purpose: by a choice on the page or `Sec-GPC`, not by the site's mode alone. */
  readonly isDenied: boolean;
  /** Whether storage is allowed for analytics. */
  readonly analytics: boolean;
  /** For which purposes storage is allowed, in one word. */
  readonly state: ConsentState;
  /**
   * Whether the visitor's data may be sent for ads, and whether it may be used to personalize ads. Neither affects
   * storage.
   */
  readonly adUserData: boolean;
  readonly adPersonalization: boolean;
  /** Whether a cookie of this name may be stored and restored, by the purpose that its name shows. */
  allows(cookieName: string): boolean;
}

/** A digit or a hyphen each for `ad_storage` and `analytics_storage` (docs/facts.md, Consent). */
const GCS = /[?&]gcs=G1([01-])([01-])/;
/** `13p3t3p2p5l1`: after a digit each, `ad_storage`, `analytics_storage`, `ad_user_data` and `ad_personalization`. */
const GCD = /[?&]gcd=1[\w-]([\w-])[\w-]([\w-])[\w-]([\w-])[\w-]([\w-])/;
/** What a letter says in the end (docs/facts.md, Consent). Any other says nothing: `l` is no choice. */
const GRANTED = 'rntv';
const DENIED = 'pqmu';
const BY_DIGIT: Readonly<Record<string, 'granted' | 'denied'>> = { 0: 'denied', 1: 'granted' };

/** The visitor's choices as the query of a hit of Google's states them; `gcs` counts before `gcd`. */
export function choicesOfHit(query: string): ConsentChoices {
  const [, ads, analytics] = GCS.exec(query) ?? [];
  const letters = GCD.exec(query)?.slice(1) ?? [];
  const [adStorage, analyticsStorage, adUserData, adPersonalization] = letters.map((letter) => {
    if (GRANTED.includes(letter)) return 'granted';
    return DENIED.includes(letter) ? 'denied' : undefined;
  });
  return {
    analytics_storage: BY_DIGIT[analytics ?? ''] ?? analyticsStorage,
    ad_storage: BY_DIGIT[ads ?? ''] ?? adStorage,
    ad_user_data: adUserData,
    ad_personalization: adPersonalization,
  };
}
