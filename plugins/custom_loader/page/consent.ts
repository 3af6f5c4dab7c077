import type { Choices, TagyardPage } from './state.ts';

/** How the loader judges consent; see `LoaderValues`. */
interface Rules {
  /** Only a grant allows a purpose. */
  readonly strict: boolean;
  /** Milliseconds after which a grant no longer counts, if its time is known. */
  readonly maxAge: number;
  /** `DE`, `US-CA`; empty: unknown. */
  readonly place: string;
  /** The name of the page's data layer. */
  readonly layer: string;
}

/** What the visitor allows at this moment. */
export interface Decision {
  /** The choice for each purpose; a missing one is unknown. */
  readonly choices: Choices;
  readonly analytics: boolean;
  readonly ads: boolean;
  /**
   * The visitor denied, so all that was kept by an earlier consent must be deleted. A default of the page is no denial.
   */
  readonly erase: boolean;
  /** What the visitor denied; a default of the page doesn't count. */
  readonly refuses: { readonly analytics: boolean; readonly ads: boolean };
}

const PURPOSES = ['analytics_storage', 'ad_storage', 'ad_user_data', 'ad_personalization'] as const;
const ADS_DENIED: Choices = { ad_storage: 'denied', ad_user_data: 'denied', ad_personalization: 'denied' };
const DENIED: Choices = { ...ADS_DENIED, analytics_storage: 'denied' };

/** Fields of GPP's US sections in which 1 is an opt-out. Other fields, such as those of notices, have longer names. */
const AD_OPT_OUT = /^(?:Sale|Shar\w+|TargetedAdvertising)OptOut$/;

/** How long Google's tags wait for a TCF platform, in milliseconds. */
const TCF_TIMEOUT_MS = 500;

// biome-ignore lint/suspicious/noExplicitAny: what pages and platforms pass is untrusted, and read as such.
type Untrusted = any;

interface Apis {
  readonly __tcfapi?: (command: string, version: number, callback: (data: Untrusted) => void) => void;
  readonly __gpp?: (command: string, callback: (event: Untrusted) => void) => void;
  readonly __uspapi?: (command: string, version: number, callback: (data: Untrusted) => void) => void;
}

/**
 * Reads consent from every source that the page has: `tagyard.consent`, Consent Mode in the data layer, TCF, GPP, the US
 * privacy string and Global Privacy Control.
 */
export function listen(page: TagyardPage, { strict, maxAge, place, layer }: Rules) {
  let changed = () => {};
  /** The visitor's choices by source. A denial in one of them counts, whatever the others say. */
  const said: Record<string, Choices> = {};
  /** Consent Mode's defaults, with the rank of the most specific region for each purpose. */
  const defaults: Choices = {};
  const ranks: Partial<Record<keyof Choices, number>> = {};
  let wait = 0;
  const connected: Partial<Record<keyof Apis, boolean>> = {};

  /** `at`: when the visitor chose, as a date or milliseconds since the epoch. An old grant is dropped. */
  const pick = (given: Untrusted, at?: Untrusted): Choices => {
    const found: Choices = {};
    const isOld = at && Date.now() - +new Date(at) > maxAge;
    for (const purpose of PURPOSES) {
      const choice = Object(given)[purpose];
      if (choice === 'denied' || (choice === 'granted' && !isOld)) found[purpose] = choice;
    }
    return found;
  };
  const say = (source: string, choices: Choices) => {
    said[source] = choices;
    changed();
  };

  /**
   * Google's rule: the more specific region counts. If it is uncertain whether a region is the visitor's, because the
   * place is not fully known, only its denials count.
   */
  const setDefaults = (given: Untrusted) => {
    let rank = 0;
    let isCertain = true;
    if (given.region) {
      const regions: string[] = [].concat(given.region);
      const includes = (name: string) => regions.indexOf(name) >= 0;
      if (place && includes(place)) rank = 2;
      else if (place && includes(place.slice(0, 2))) rank = 1;
      else if (regions.some((region) => region.startsWith(place))) [rank, isCertain] = [2, false];
      else return;
    }
    wait = Math.max(wait, +given.wait_for_update || 0);
    const choices = pick(given);
    for (const purpose of PURPOSES) {
      const choice = choices[purpose];
      if (!choice || rank < (ranks[purpose] || 0) || (!isCertain && choice === 'granted')) continue;
      ranks[purpose] = rank;
      defaults[purpose] = choice;
    }
    changed();
  };

  /** May throw, because an entry can be anything. */
  const command = (entry: Untrusted) => {
    if (entry[0] !== 'consent') return;
    if (entry[1] === 'default') setDefaults(entry[2]);
    if (entry[1] === 'update') say('gtag', { ...said.gtag, ...pick(entry[2]) });
  };

  const tcf = (data: Untrusted) => {
    if (!data) return;
    const granted = Object(Object(data.purpose).consents);
    const choice = (first: number, second: number) =>
      data.gdprApplies === false ? '' : granted[first] && granted[second] ? 'granted' : 'denied';
    const choices = {
      analytics_storage: choice(1, 8),
      ad_storage: choice(1, 7),
      ad_user_data: choice(1, 7),
      ad_personalization: choice(3, 4),
    };
    // While the platform asks the visitor, there is no choice yet, unless an earlier one grants purpose 1.
    const isAsking = data.eventStatus === 'cmpuishown';
    pending = isAsking && !granted[1];
    say('tcf', pending ? {} : pick(choices, data.tcString && updatedAt(data.tcString)));
  };
  /** A TCF platform exists and the visitor hasn't chosen yet. */
  let pending = false;

  const gpp = (event: Untrusted) => {
    const ping = Object(event).pingData;
    if (!ping || ping.signalStatus === 'not ready') return;
    const sections = Object(ping.parsedSections);
    let denied: Choices = {};
    for (const name of Object.keys(sections)) {
      if (!name.startsWith('us')) continue;
      for (const part of [].concat(sections[name]) as Untrusted[]) {
        if (part.Gpc) denied = DENIED;
        const isOut = Object.keys(part).some((key) => AD_OPT_OUT.test(key) && part[key] === 1);
        if ((isOut || part.OptOutSale === 'Y') && denied !== DENIED) denied = ADS_DENIED;
      }
    }
    say('gpp', denied);
  };

  const connect = () => {
    const { __tcfapi, __gpp, __uspapi } = window as unknown as Apis;
    const once = (name: keyof Apis, run: () => void) => {
      if (connected[name]) return;
      connected[name] = true;
      try {
        run();
      } catch {}
    };
    if (__tcfapi) {
      once('__tcfapi', () => {
        pending = true;
        __tcfapi('addEventListener', 2, tcf);
      });
    }
    if (__gpp) once('__gpp', () => __gpp('addEventListener', gpp));
    if (__uspapi) {
      once('__uspapi', () =>
        __uspapi('getUSPData', 1, (data) =>
          say('usp', data && /^1.Y/i.test(data.uspString) ? ADS_DENIED : {}),
        ),
      );
    }
  };

  const update = (given: Untrusted) => say('page', { ...said.page, ...pick(given, Object(given).at) });

  const isSaid = (purpose: keyof Choices, choice: string) =>
    Object.values(said).some((choices) => choices[purpose] === choice);
  const choice = (purpose: keyof Choices) =>
    (isSaid(purpose, 'denied') && 'denied') ||
    (isSaid(purpose, 'granted') && 'granted') ||
    (pending && 'denied') ||
    defaults[purpose];

  const own: Untrusted = page.consent || {};
  said.page = pick(own, own.at);
  page.consent = own;
  own.update = update;
  (page.updates || []).forEach(update);
  if ((navigator as Untrusted).globalPrivacyControl) said.gpc = DENIED;
  const global: Untrusted = window;
  global[layer] = global[layer] || [];
  const entries: Untrusted = global[layer];
  const hear = (items: ArrayLike<unknown>) => {
    for (let index = 0; index < items.length; index++) {
      try {
        command(items[index]);
      } catch {}
    }
  };
  hear(entries);
  const { push } = entries;
  entries.push = (...items: unknown[]) => {
    const result: unknown = push.apply(entries, items);
    hear(items);
    return result;
  };
  connect();
  // For a platform that loads after the loader.
  addEventListener('load', connect);

  return {
    /** Calls `callback` whenever a source says something. */
    onChange(callback: () => void): void {
      changed = callback;
    },
    decide(): Decision {
      const choices: Choices = {};
      for (const purpose of PURPOSES) {
        const found = choice(purpose);
        if (found) choices[purpose] = found;
      }
      const refuses = {
        analytics: isSaid('analytics_storage', 'denied'),
        ads: isSaid('ad_storage', 'denied'),
      };
      // A US opt-out says nothing about analytics: the choice about analytics may still come.
      const isDenied =
        refuses.analytics ||
        Object.values(said).some((own) => own !== ADS_DENIED && own.ad_storage === 'denied');
      const allows = (found: string | undefined) => (strict ? found === 'granted' : found !== 'denied');
      const analytics = allows(choices.analytics_storage);
      const ads = allows(choices.ad_storage);
      return { choices, analytics, ads, erase: isDenied && !analytics && !ads, refuses };
    },
    /** Milliseconds to wait for the visitor's choice; 0: none is awaited from Consent Mode or a TCF platform. */
    timeout(): number {
      if (said.gtag) wait = 0;
      return Math.max(wait, connected.__tcfapi && !said.tcf ? TCF_TIMEOUT_MS : 0);
    },
  };
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** When a TCF string was last updated: 36 bits in tenths of a second, after 6 bits of version and 36 of `Created`. */
function updatedAt(text: string): number {
  let tenths = 0;
  for (const digit of text.slice(7, 13)) tenths = tenths * 64 + ALPHABET.indexOf(digit);
  return tenths * 100;
}
