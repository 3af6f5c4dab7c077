import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import {
  ALL_DENIED,
  ALL_GRANTED,
  consentShop,
  DEFAULT_DENIED,
  gtag,
} from '../support/browser/consent-page.ts';
import { type EdgePage, startEdgePage } from '../support/browser/edge-page.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { tcString } from '../support/browser/tcf.ts';
import { settled, state } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const script = (text: string) => `<script>${text}</script>`;
const granted = { analytics_storage: 'granted', ad_storage: 'granted' };
const denied = { analytics_storage: 'denied', ad_storage: 'denied' };

/** A TCF platform that has loaded: it calls its listeners at once (IAB Tech Lab, CMP API v2). */
const tcf = (data: object) =>
  script(`window.__tcfapi=(command,version,callback)=>{
    if(command==='addEventListener')callback(Object.assign({listenerId:1,gdprApplies:true,eventStatus:'tcloaded'},
      ${JSON.stringify(data)}),true)}`);
const purposes = (...ids: number[]) => ({
  purpose: { consents: Object.fromEntries(ids.map((id) => [id, true])) },
});
/** A GPP platform that is ready (IAB Tech Lab, GPP CMP API 1.1). */
const gpp = (sections: object) =>
  script(`window.__gpp=(command,callback)=>{if(command==='addEventListener')callback({eventName:'listenerRegistered',
    pingData:{signalStatus:'ready',applicableSections:[7],parsedSections:${JSON.stringify(sections)}}},true)}`);
const usp = (text: string) =>
  script(`window.__uspapi=(command,version,callback)=>{if(command==='getUSPData')
    callback({version:1,uspString:'${text}'},true)}`);

const DAY = 86_400_000;

describeWith('chromium', 'the loader reads consent from', () => {
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

  async function choicesOf(head: string, rules = {}, arrange = '') {
    await using browser = await chromium.newContext();
    if (arrange) await browser.addInitScript({ content: arrange });
    const { open } = await consentShop(stage, rules);
    const at = await open(browser, head);
    expect((await settled(at.page))?.gtm).toBe('loaded');
    const boots = (await at.sent('/boot')).map(({ body }) => body);
    expect(at.errors).toEqual([]);
    const { profile, choices } = (await state(at.page)) ?? {};
    return { isIdentified: profile !== null, choices, boots };
  }

  const allDenied = {
    ad_storage: 'denied',
    ad_user_data: 'denied',
    ad_personalization: 'denied',
    analytics_storage: 'denied',
  };

  const { analytics_storage: _, ...adsDenied } = allDenied;
  const allGranted = { ...granted, ad_user_data: 'granted', ad_personalization: 'granted' };

  test.each<[string, string, object, boolean]>([
    ['nothing', '', {}, true],
    ['tagyard.consent', script(`window.tagyard={consent:${JSON.stringify(denied)}}`), denied, false],
    [
      'unknown members and values',
      script(`window.tagyard={consent:{other:'denied',ad_storage:1,analytics_storage:'maybe'}}`),
      {},
      true,
    ],
    ['Consent Mode’s default', DEFAULT_DENIED, allDenied, false],
    ['a later default', DEFAULT_DENIED + gtag(`gtag('consent','default',${ALL_GRANTED})`), allGranted, true],
    [
      'Consent Mode’s update, before the loader ran',
      DEFAULT_DENIED + gtag(`gtag('consent','update',{analytics_storage:'granted'})`),
      { ...allDenied, analytics_storage: 'granted' },
      true,
    ],
    ['other items of the data layer', script(`dataLayer=[null,1,'x',{consent:1},['consent']]`), {}, true],
    ['TCF: nothing allowed', tcf(purposes()), allDenied, false],
    [
      'TCF: storage and measurement',
      tcf(purposes(1, 8)),
      { ...allDenied, analytics_storage: 'granted' },
      true,
    ],
    [
      'TCF: all allowed, after a default that denies',
      DEFAULT_DENIED + tcf(purposes(1, 2, 3, 4, 7, 8, 9, 10)),
      allGranted,
      true,
    ],
    ['TCF: it doesn’t apply', tcf({ gdprApplies: false, ...purposes() }), {}, true],
    ['TCF: the platform is asking', tcf({ eventStatus: 'cmpuishown', ...purposes() }), allDenied, false],
    ['a TCF platform that never answers', script('window.__tcfapi=()=>{}'), allDenied, false],
    ['GPP: opted out of sale', gpp({ usnat: [{ SaleOptOut: 1, SaleOptOutNotice: 1 }] }), adsDenied, true],
    ['GPP: not opted out', gpp({ usca: { SaleOptOut: 2, SaleOptOutNotice: 1 } }), {}, true],
    ['GPP: Global Privacy Control', gpp({ usnatv1: [{ SaleOptOut: 0 }, { Gpc: true }] }), allDenied, false],
    ['GPP: a section that isn’t of the US', gpp({ tcfeuv2: { SaleOptOut: 1 } }), {}, true],
    ['the US privacy string: opted out', usp('1YYN'), adsDenied, true],
    ['the US privacy string: not opted out', usp('1YNN'), {}, true],
    ['a platform that throws', script(`window.__gpp=()=>{throw new Error('x')}`), {}, true],
    [
      'a grant and a denial, of which the denial counts',
      tcf(purposes(1, 7, 8)) + usp('1YYY'),
      { ...allDenied, analytics_storage: 'granted' },
      true,
    ],
  ])('%s (visitor identified: $3)', async (_name, head, choices, isIdentified) => {
    const found = await choicesOf(head);
    expect([found.choices, found.isIdentified]).toEqual([choices, isIdentified]);
  });

  test('Global Privacy Control in the browser: only token, origin and the denial are sent', async () => {
    const arrange = `Object.defineProperty(Navigator.prototype,'globalPrivacyControl',{get:()=>true})`;
    const { boots, choices } = await choicesOf(gtag(`gtag('consent','update',${ALL_GRANTED})`), {}, arrange);
    expect(choices).toEqual(allDenied);
    expect(boots).toEqual([{ loader: expect.any(String), url: expect.any(String), consent: denied }]);
  });

  test.each<[string, string, object, boolean]>([
    [
      'TCF, 300 days old',
      tcf({ ...purposes(1, 7, 8), tcString: tcString(Date.now() - 300 * DAY) }),
      {},
      true,
    ],
    [
      'TCF, 400 days old',
      tcf({ ...purposes(1, 7, 8), tcString: tcString(Date.now() - 400 * DAY) }),
      {},
      false,
    ],
    [
      'TCF, older than the site’s own limit',
      tcf({ ...purposes(1, 7, 8), tcString: tcString(Date.now() - 300 * DAY) }),
      { consentMaxDays: 180 },
      false,
    ],
    [
      'tagyard.consent, years old',
      script(`window.tagyard={consent:{analytics_storage:'granted',at:'2020-01-01T00:00:00Z'}}`),
      {},
      false,
    ],
    [
      'tagyard.consent, given today',
      script(`window.tagyard={consent:{analytics_storage:'granted',at:Date.now()}}`),
      {},
      true,
    ],
  ])('%s (the grant counts: $3)', async (_name, head, rules, expected) => {
    const { isIdentified } = await choicesOf(head, { consent: 'required', ...rules });
    expect(isIdentified).toBe(expected);
  });

  test('wait_for_update: a choice within that time is the first that is sent', async () => {
    await using browser = await chromium.newContext();
    const { open } = await consentShop(stage, { consent: 'required' });
    const wait = `gtag('consent','default',Object.assign(${ALL_DENIED},{wait_for_update:1e6}))`;
    const at = await open(browser, gtag(wait));
    await eventually(async () => expect((await state(at.page))?.gtm).toBe('waiting'));
    expect(await at.sent('/boot')).toEqual([]);
    await at.page.evaluate(`gtag('consent','update',${ALL_GRANTED})`);
    await settled(at.page);
    expect((await at.sent('/boot')).map(({ body }) => body.consent.ad_storage)).toEqual(['granted']);
  });

  test('wait_for_update: without a choice within that time, the bootstrap is sent after it', async () => {
    await using browser = await chromium.newContext();
    const { open } = await consentShop(stage, { consent: 'required' });
    const wait = `gtag('consent','default',Object.assign(${ALL_DENIED},{wait_for_update:50}))`;
    const at = await open(browser, gtag(wait));
    expect((await settled(at.page))?.gtm).toBe('loaded');
    expect((await at.sent('/boot')).map(({ body }) => body.consent)).toEqual([denied]);
  });

  test.each(['before the loader ran', 'after the loader ran'])('tagyard.consent.update %s', async (when) => {
    await using browser = await chromium.newContext();
    const { open, site } = await consentShop(stage, { consent: 'required', consentMode: 'basic' });
    const call = `tagyard.consent.update({analytics_storage:'granted',ad_storage:'granted',other:'x'})`;
    const early = when === 'before the loader ran';
    stage.fault = (path) => (early && path.startsWith('/l/') ? 'hold' : undefined);
    const at = await open(browser);
    if (early) {
      await eventually(() => expect(stage.held()).toBeGreaterThan(0));
    } else {
      await eventually(async () => expect((await state(at.page))?.gtm).toBe('waiting'));
    }
    await at.page.evaluate(call);
    stage.fault = () => undefined;
    stage.release();
    expect((await settled(at.page))?.gtm).toBe('loaded');
    expect((await at.sent('/boot')).map(({ body }) => body.consent)).toEqual([granted]);
    await at.page.evaluate(`tagyard.consent.update({analytics_storage:'denied',ad_storage:'denied'})`);
    await eventually(async () => expect((await state(at.page))?.profile).toBeNull());
    const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${site.manifest.site}:` });
    expect(keys).toEqual([]);
  });

  test('a consent string of 100 KB, which is not sent, and the page works', async () => {
    const { boots, isIdentified } = await choicesOf(
      script(`window.tagyard={consent:{analytics_storage:'granted',tcString:'C'.repeat(1e5)}};`) +
        gtag(`gtag('consent','update',{ad_storage:'granted',tcString:'C'.repeat(1e5)})`) +
        tcf({ ...purposes(1, 7, 8), tcString: `${tcString(Date.now())}${'A'.repeat(1e5)}` }),
    );
    expect(isIdentified).toBe(true);
    expect(JSON.stringify(boots).length).toBeLessThan(1000);
  });
});

describeWith('chromium', 'Consent Mode’s defaults for regions', () => {
  let world: EdgePage;
  let chromium: Visitors;
  beforeAll(async () => {
    world = await startEdgePage();
    chromium = await startChromium({ hosts: world.hosts });
  });
  afterAll(async () => {
    await chromium.close();
    await world.close();
  });

  const only = (region: string, more = '') =>
    `gtag('consent','default',Object.assign(${ALL_DENIED},{region:['${region}']}));${more}`;
  const general = `gtag('consent','default',${ALL_GRANTED});`;

  test.each<[string, object | null, string, boolean]>([
    ['the visitor’s country', { country: 'DE' }, general + only('DE'), false],
    ['another country', { country: 'FR' }, general + only('DE'), true],
    ['the visitor’s part of a country', { country: 'US', regionCode: 'CA' }, general + only('US-CA'), false],
    ['another part', { country: 'US', regionCode: 'NY' }, general + only('US-CA'), true],
    ['an unknown part', { country: 'US' }, general + only('US-CA'), false],
    ['the more specific default first', { country: 'DE' }, only('DE', general), false],
    ['an unknown place, for which denials count', null, general + only('DE'), false],
  ])('%s (visitor identified: $3)', async (_name, cf, commands, expected) => {
    world.head = gtag(commands);
    await using browser = await chromium.newContext();
    // The runtime reads the visitor's place from `mf-cf-blob`. Only the loader's answer depends on it.
    const place = { 'cf-connecting-ip': '203.0.113.7', 'mf-cf-blob': JSON.stringify(cf) };
    await browser.route(/\/l\//, (route) =>
      route.continue({ headers: { ...route.request().headers(), ...(cf === null ? {} : place) } }),
    );
    const page = await browser.newPage();
    await page.goto(world.url.page);
    expect((await settled(page))?.gtm).toBe('loaded');
    const { profile } = (await state(page)) ?? {};
    expect(profile).toEqual(expected ? { id: expect.any(String), isNew: true } : null);
  });
});
