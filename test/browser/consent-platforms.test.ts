import { readFileSync } from 'node:fs';
import type { BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import {
  ALL_DENIED,
  ALL_GRANTED,
  type ConsentVisit,
  consentShop,
  gtag,
  identified,
  updateConsent,
} from '../support/browser/consent-page.ts';
import {
  expectForgotten,
  expectKnown,
  expectNothingKnown,
  GA,
  GRANTED,
  isState,
  LANDING,
  MODES,
  type Mode,
  sentKinds,
} from '../support/browser/consent-steps.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { TCF_STUB, tcData, tcfPlatform } from '../support/browser/tcf.ts';
import { state } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const guide = readFileSync(new URL('../../docs/consent.md', import.meta.url), 'utf8');

/** The example of a platform in the guide. */
function example(platform: string): string {
  const [, block] = new RegExp(`### ${platform}\\n[^#]*?\`\`\`html\\n(.*?)\`\`\``, 's').exec(guide) ?? [];
  if (block === undefined) throw new Error(`docs/consent.md has no example for ${platform}`);
  return block;
}

/** A cookie that a tag has set: without anything to keep, no profile would be written. */
const ANALYTICS_COOKIE = `<script>document.cookie='_ga=${GA};path=/'</script>`;

interface Platform {
  readonly name: string;
  /** The platform's section in the guide, if it has another name. */
  readonly section?: string;
  /** What the platform's own script does when it loads, by its documentation. */
  readonly loads: string;
  /** What it does when the visitor has chosen. */
  readonly chooses: (isGranted: boolean) => string;
}

const platforms: readonly Platform[] = [
  {
    name: 'Cookiebot',
    loads: 'window.Cookiebot={consent:{necessary:true,preferences:false,statistics:false,marketing:false}}',
    chooses: (all) =>
      `Object.assign(Cookiebot.consent,{statistics:${all},marketing:${all}});
      dispatchEvent(new Event('CookiebotOnConsentReady'))`,
  },
  {
    name: 'Usercentrics',
    loads: `dispatchEvent(new CustomEvent('ucEvent',{detail:{event:'consent_status',action:'onInitialPageLoad',
      type:'implicit','Google Analytics':false,'Google Ads':false}}))`,
    chooses: (all) =>
      `dispatchEvent(new CustomEvent('ucEvent',{detail:{event:'consent_status',action:'onUpdateServices',
      type:'explicit','Google Analytics':${all},'Google Ads':${all}}}))`,
  },
  {
    name: 'Usercentrics V3',
    section: 'Usercentrics',
    loads: `dispatchEvent(new CustomEvent('ucEvent',{detail:{event:'consent_status',action:'onInitialPageLoad',
      type:'IMPLICIT','Google Analytics':false,'Google Ads':false}}))`,
    chooses: (all) =>
      `dispatchEvent(new CustomEvent('ucEvent',{detail:{event:'consent_status',action:'onUpdateServices',
      type:'EXPLICIT','Google Analytics':${all},'Google Ads':${all}}}))`,
  },
  {
    name: 'OneTrust',
    loads: `window.OnetrustActiveGroups=',C0001,';
      window.OneTrust={IsAlertBoxClosed:()=>window.hasChosen===true};OptanonWrapper()`,
    chooses: (all) =>
      `window.hasChosen=true;window.OnetrustActiveGroups='${all ? ',C0001,C0002,C0003,C0004,' : ',C0001,'}';
      OptanonWrapper()`,
  },
  {
    name: 'Didomi',
    loads: `window.Didomi={purposes:{},shouldConsentBeCollected:()=>true,
      getCurrentUserStatus(){return{purposes:this.purposes}}};didomiOnReady.forEach((run)=>run(Didomi))`,
    chooses: (all) =>
      `['measure_content_performance','measure_ad_performance','select_personalized_ads'].forEach((id)=>{
      Didomi.purposes[id]={id,enabled:${all}}});
      didomiEventListeners.forEach(({event,listener})=>event==='consent.changed'&&listener({}))`,
  },
  {
    name: 'Axeptio',
    loads: `window.heardByAxeptio={};_axcb.forEach((run)=>run({on(name,call){heardByAxeptio[name]=call}}))`,
    chooses: (all) => `heardByAxeptio['cookies:complete']({google_analytics:${all},google_ads:${all}})`,
  },
  {
    name: 'Klaro',
    loads: `window.manager={confirmed:false,consents:{},watchers:[],watch(one){this.watchers.push(one)}};
      window.klaro={getManager:()=>manager}`,
    chooses: (all) =>
      `Object.assign(manager,{confirmed:true,consents:{'google-analytics':${all},'google-ads':${all}}});
      manager.watchers.forEach((one)=>one.update(manager,'saveConsents',{changes:2}))`,
  },
];

const REFUSED = Object.fromEntries(Object.keys(GRANTED).map((purpose) => [purpose, 'denied']));

const exampleOf = ({ name, section = name }: Platform) => example(section);

/**
 * The commands by which platforms start Consent Mode, as documented: a default for some places, one for all others, and
 * two settings.
 */
const CONSENT_MODE = gtag(`
  gtag('consent','default',Object.assign(${ALL_DENIED},{region:['DE','FR','US-CA'],wait_for_update:500}));
  gtag('consent','default',${ALL_GRANTED});
  gtag('set','ads_data_redaction',true);
  gtag('set','url_passthrough',true)`);

describeWith('chromium', 'consent by the documented commands of a platform', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  test.each(platforms)(
    '$name: no bootstrap before the choice, a grant makes a profile, a withdrawal deletes it',
    async (one) => {
      await using browser = await chromium.newContext();
      const { site, open } = await consentShop(stage, { consent: 'required', consentMode: 'basic' });
      const at = await open(browser, `${ANALYTICS_COOKIE}${exampleOf(one)}<script>${one.loads}</script>`);
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('waiting'));
      await at.page.waitForLoadState('load');
      expect(await at.sent('/boot')).toEqual([]);

      await at.page.evaluate(one.chooses(true));
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('loaded'));
      const { profile, choices } = (await state(at.page)) ?? {};
      expect(choices).toEqual(GRANTED);
      expect(await site.profile(profile?.id)).not.toBeNull();

      await at.page.evaluate(one.chooses(false));
      await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
      expect(await site.profile(profile?.id)).toBeNull();
      expect(await browser.cookies()).toEqual([]);
      expect(at.errors).toEqual([]);
    },
  );

  // Klaro's own script is deferred, so it runs after the snippet.
  test.each(platforms.filter(({ name }) => name !== 'Klaro'))(
    '$name: a refusal stated before the snippet runs is respected from the first bootstrap on',
    async (one) => {
      await using browser = await chromium.newContext();
      const { open } = await consentShop(stage);
      const head = `${ANALYTICS_COOKIE}${exampleOf(one)}<script>${one.loads};${one.chooses(false)}</script>`;
      const at = await open(browser, head);
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('loaded'));
      expect((await state(at.page))?.choices).toEqual(REFUSED);
      expect(await browser.cookies()).toEqual([]);
      expect((await at.sent('/boot')).filter(({ body }) => body.consent.ad_storage !== 'denied')).toEqual([]);
      expect(at.errors).toEqual([]);
    },
  );

  /** Stops the clock of the browser's pages: their timers wait for `fastForward`. */
  async function pauseClock(browser: BrowserContext): Promise<void> {
    const now = Date.now();
    await browser.clock.install({ time: now });
    await browser.clock.pauseAt(now + 60_000);
  }

  type Place = { readonly country: string; readonly region: string };
  const berlin = { country: 'DE', region: 'BE' };
  const newYork = { country: 'US', region: 'NY' };

  describe('Consent Mode: a default with a wait for some regions, one for all others, an update', () => {
    afterEach(() => {
      stage.placeOf = () => undefined;
    });

    test.each<[string, Mode, Place | undefined]>([
      ['a listed place', 'basic', berlin],
      ['a listed place', 'advanced', berlin],
      ['an unknown place', 'advanced', undefined],
    ])('%s, %s: nothing is known before the choice', async (_name, mode, place) => {
      await using browser = await chromium.newContext();
      await pauseClock(browser);
      stage.placeOf = () => place;
      const { site, open } = await consentShop(stage, MODES[mode]);
      const head = ANALYTICS_COOKIE + CONSENT_MODE;
      const at = await open(browser, head, LANDING);
      await isState(at, 'waiting');
      await at.page.clock.fastForward(499);
      expect((await state(at.page))?.gtm).toBe('waiting');
      await at.page.clock.fastForward(1);
      await expectNothingKnown(at, mode, site);
      expect((await browser.cookies()).map(({ name }) => name)).toEqual(['_ga']);

      await updateConsent(at, ALL_GRANTED);
      const id = await identified(at);
      await isState(at, 'loaded');
      await expectKnown(at, site);

      // The next page: the platform repeats the choice while the loader waits for it.
      const next = await open(browser, head, LANDING);
      await isState(next, 'waiting');
      await updateConsent(next, ALL_GRANTED);
      expect(await identified(next)).toBe(id);
      await next.page.clock.fastForward(500);
      await updateConsent(next, ALL_DENIED);
      await expectForgotten(next, site, id);
      expect((await next.sent('/boot')).map(({ body }) => body.fpid)).toEqual([id, id]);
    });

    test.each<Mode>(['basic', 'advanced'])(
      'a place that isn’t listed, %s: the visitor is known at once, until a refusal',
      async (mode) => {
        await using browser = await chromium.newContext();
        await pauseClock(browser);
        stage.placeOf = () => newYork;
        const { site, open } = await consentShop(stage, MODES[mode]);
        const at = await open(browser, ANALYTICS_COOKIE + CONSENT_MODE, LANDING);
        const id = await identified(at);
        await isState(at, 'loaded');
        await expectKnown(at, site);
        await updateConsent(at, ALL_DENIED);
        await expectForgotten(at, site, id);
      },
    );
  });

  test.each<Mode>(['basic', 'advanced'])(
    'TCF, %s: a listener added to the stub gets each state: asking, chosen, known again, withdrawn, refused',
    async (mode) => {
      await using browser = await chromium.newContext();
      await pauseClock(browser);
      const { site, open } = await consentShop(stage, MODES[mode], 'custom');
      const head = ANALYTICS_COOKIE + TCF_STUB;
      const all = [1, 2, 3, 4, 7, 8, 9, 10];
      const says = (at: ConsentVisit, data: string) => at.page.evaluate(`tcf.state(${data})`);
      /** The page with only the stub, and then the platform's script. */
      async function load(first: string): Promise<ConsentVisit> {
        const at = await open(browser, head, LANDING);
        await isState(at, 'waiting');
        expect(await sentKinds(at)).toEqual(['l']);
        await at.page.evaluate(tcfPlatform(first));
        expect(await at.page.evaluate('tcf.listeners()')).toBe(1);
        return at;
      }

      const asked = await load(tcData('cmpuishown'));
      await asked.page.clock.fastForward(500);
      await expectNothingKnown(asked, mode, site);
      await says(asked, tcData('useractioncomplete', ...all));
      const id = await identified(asked);
      await isState(asked, 'loaded');
      await expectKnown(asked, site);

      const known = await load(tcData('tcloaded', ...all));
      expect(await identified(known)).toBe(id);
      await expectKnown(known, site);
      // The dialogue is opened again: nothing changes before the visitor has made a new choice.
      await says(known, tcData('cmpuishown', ...all));
      await says(known, tcData('useractioncomplete'));
      await expectForgotten(known, site, id);
      expect((await known.sent('/boot')).map(({ body }) => body.fpid)).toEqual([id, id]);

      const refused = await load(tcData('tcloaded'));
      await expectNothingKnown(refused, mode, site);
      await eventually(async () => expect(await browser.cookies()).toEqual([]));
      await says(refused, tcData('useractioncomplete', ...all));
      expect(await identified(refused)).not.toBe(id);
    },
  );
});
