import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { consentShop } from '../support/browser/consent-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
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

/** What a tag has set: with nothing to keep, no record would be written. */
const ANALYTICS_COOKIE = `<script>document.cookie='_ga=GA1.1.1111111111.1700000000;path=/'</script>`;

interface Platform {
  readonly name: string;
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
    '$name: nothing before the choice; a grant identifies; a withdrawal deletes',
    async (one) => {
      await using browser = await chromium.newContext();
      const { site, open } = await consentShop(stage, { consent: 'required', consentMode: 'basic' });
      const at = await open(browser, `${ANALYTICS_COOKIE}${example(one.name)}<script>${one.loads}</script>`);
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('waiting'));
      await at.page.waitForLoadState('load');
      expect(await at.sent('/boot')).toEqual([]);

      await at.page.evaluate(one.chooses(true));
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('loaded'));
      const { profile, choices } = (await state(at.page)) ?? {};
      expect(choices).toEqual({
        analytics_storage: 'granted',
        ad_storage: 'granted',
        ad_user_data: 'granted',
        ad_personalization: 'granted',
      });
      expect(await site.profile(profile?.id)).not.toBeNull();

      await at.page.evaluate(one.chooses(false));
      await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
      expect(await site.profile(profile?.id)).toBeNull();
      expect(await browser.cookies()).toEqual([]);
      expect(at.errors).toEqual([]);
    },
  );
});
