import type { BrowserContext } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import {
  ALL_DENIED,
  ALL_GRANTED,
  type ConsentVisit,
  consentShop,
  DEFAULT_DENIED,
  gtag,
  identified,
  updateConsent,
} from '../support/browser/consent-page.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { cookie, state } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const GA = 'GA1.1.1234567890.1700000000';
const FBP = 'fb.1.1700000000.987654321';
/** 128 random bits. */
const RANDOM = '9f86d081884c7d659a2feaa0c55ad015';
/** Longer than the time after which a withdrawal is sent again, in milliseconds. */
const LATER = 60_000;
const GRANTED = gtag(`gtag('consent','update',${ALL_GRANTED})`);

describeWith('chromium', 'a withdrawal of consent', () => {
  let stage: BrowserStage;
  let chromium: Visitors;
  beforeAll(async () => {
    stage = await startBrowserStage();
    chromium = await startChromium(stage.browser);
  });
  afterEach(() => {
    stage.fault = () => undefined;
    stage.release();
  });
  afterAll(async () => {
    await chromium.close();
    await stage.close();
  });

  const forgotten = (at: ConsentVisit) =>
    eventually(async () => expect((await state(at.page))?.profile).toBeNull());
  const kept = async ({ manifest }: BrowserSite) => {
    const { keys } = await stage.edge.kv.COOKIES.list({ prefix: `${manifest.site}:` });
    return keys.map(({ name }) => name);
  };
  const names = async (browser: BrowserContext) =>
    (await browser.cookies()).map(({ name }) => name).toSorted();
  const write = (browser: BrowserContext, domain: string, cookies: Record<string, string>) =>
    browser.addCookies(Object.entries(cookies).map(([name, value]) => ({ name, value, domain, path: '/' })));

  test('deletes the data under a master cookie that scripts can’t read, after the browser lost the id', async () => {
    await using browser = await chromium.newContext();
    const modules = { cookie_restoration: { masterCookie: 'shop_visitor' } };
    const { site, domain, open } = await consentShop(stage, { modules }, 'custom');
    await write(browser, domain, { _ga: GA });
    await browser.addCookies([
      {
        name: 'shop_visitor',
        value: RANDOM,
        domain,
        path: '/',
        httpOnly: true,
        secure: true,
        sameSite: 'Lax',
      },
    ]);
    await identified(await open(browser, GRANTED));
    await eventually(async () => expect(await kept(site)).toEqual([expect.stringContaining(':master:')]));
    await browser.clearCookies({ name: /^(?:_fpid|tagyard_session)$/ });
    const at = await open(browser, gtag(`gtag('consent','update',${ALL_DENIED})`));
    await forgotten(at);
    expect(await kept(site)).toEqual([]);
    // Tagyard didn't set the shop's own cookie.
    expect(await names(browser)).toEqual(['shop_visitor']);
    expect(await at.page.evaluate('localStorage.length')).toBe(0);
  });

  describe.each(['edge', 'custom'] as const)('with the loader from the %s host', (host) => {
    /** A shop whose visitor has granted all; cookies were lost, and restored in the second of three page views. */
    async function restored(browser: BrowserContext, cookies: Record<string, string>) {
      const modules = { cookie_restoration: { cookies: ['_ga', '_fbp', 'mine'] } };
      const { site, domain, open } = await consentShop(stage, { modules }, host);
      await write(browser, domain, cookies);
      await identified(await open(browser, GRANTED));
      await browser.clearCookies({ name: new RegExp(`^(?:${Object.keys(cookies).join('|')})$`) });
      await identified(await open(browser, GRANTED));
      expect(await names(browser)).toEqual(expect.arrayContaining(Object.keys(cookies)));
      const at = await open(browser, GRANTED);
      const id = await identified(at);
      return { site, open, at, id };
    }

    test('for all purposes deletes what an earlier page view has restored', async () => {
      await using browser = await chromium.newContext();
      const { site, at } = await restored(browser, { _ga: GA, _fbp: FBP, mine: '1' });
      await updateConsent(at, ALL_DENIED);
      await forgotten(at);
      await eventually(async () => expect(await names(browser)).toEqual([]));
      expect(await kept(site)).toEqual([]);
      expect(at.errors).toEqual([]);
    });

    test('for one purpose deletes that purpose’s cookies, and those of unknown purpose', async () => {
      await using browser = await chromium.newContext();
      const { site, at, id } = await restored(browser, { _ga: GA, _fbp: FBP, mine: '1' });
      await updateConsent(at, `{analytics_storage:'denied'}`);
      await eventually(async () =>
        expect(await names(browser)).toEqual(['_fbp', '_fpid', 'tagyard_session']),
      );
      expect(await site.profile(id)).toMatchObject({ cookies: [{ name: '_fbp' }] });
    });

    test('is not the same as a default of the page, which deletes no cookies', async () => {
      await using browser = await chromium.newContext();
      const { open } = await restored(browser, { _ga: GA, _fbp: FBP });
      const only = gtag(
        `gtag('consent','default',${ALL_DENIED});gtag('consent','update',{ad_storage:'granted'})`,
      );
      const at = await open(browser, only);
      await identified(at);
      expect(await names(browser)).toEqual(expect.arrayContaining(['_fbp', '_ga']));
    });

    test('deletes the page’s cookies at once even if the edge fails, and is sent to it later, before a new grant', async () => {
      await using browser = await chromium.newContext();
      const now = Date.now();
      await browser.clock.install({ time: now });
      const { site, at, id } = await restored(browser, { _ga: GA });
      await browser.clock.pauseAt(now + LATER);
      stage.fault = (path) => (path === '/boot' ? 'fail' : undefined);
      const before = (await at.sent('/boot')).length;
      if (host === 'custom') await browser.route(/\/boot$/, (route) => route.abort());
      await updateConsent(at, ALL_DENIED);
      await eventually(async () => expect(await names(browser)).toEqual([]));
      expect(await site.profile(id)).not.toBeNull();
      expect((await at.sent('/boot')).length).toBeGreaterThan(before);
      await updateConsent(at, ALL_GRANTED);
      await eventually(async () => expect((await at.sent('/boot')).at(-1)?.body.fpid).toBe(id));

      stage.fault = () => undefined;
      await browser.unrouteAll();
      // A step of the clock starts the next attempt, and would end one under way, so each attempt is answered before
      // the next step.
      await eventually(async () => {
        const answered = at.page.waitForResponse(
          (response) => response.url().endsWith('/boot') && response.ok(),
          { timeout: 5_000 },
        );
        await Promise.all([answered, at.page.clock.fastForward(LATER)]);
      });
      const next = await eventually(async () => {
        const found = (await state(at.page))?.profile?.id;
        expect(found).not.toBe(id);
        expect(found).toBeDefined();
        return String(found);
      });
      expect(await site.profile(id)).toBeNull();
      expect((await cookie(browser, '_fpid'))?.value).toBe(next);
      // The page's clock may end a bootstrap that is under way; the page then sends it again.
      const bodies = (await at.sent('/boot')).map(({ body }) => body);
      const heard = bodies.findLastIndex(({ consent }) => consent?.ad_storage === 'denied');
      expect(bodies[heard]).toMatchObject({ fpid: id });
      const later = bodies.slice(heard + 1);
      expect(later.length).toBeGreaterThan(0);
      for (const body of later) {
        expect(body).toMatchObject({ consent: { ad_storage: 'granted' } });
        // The answer of a bootstrap that the page's clock has ended may have set the new id already.
        expect(body.fpid ?? next).toBe(next);
      }
    });
  });

  test('on a page that is left while the edge fails is sent by the next page, before any choice there', async () => {
    await using browser = await chromium.newContext();
    const { site, open } = await consentShop(stage, { consent: 'required', consentMode: 'basic' });
    await write(browser, `.${site.manifest.domains[0]?.domain}`, { _ga: GA });
    const at = await open(browser, GRANTED);
    const id = await identified(at);
    stage.fault = (path) => (path === '/boot' ? 'refuse' : undefined);
    await updateConsent(at, ALL_DENIED);
    await eventually(async () => expect(await names(browser)).toEqual([]));
    await at.page.close();
    expect(await site.profile(id)).not.toBeNull();
    stage.fault = () => undefined;
    const next = await open(browser, DEFAULT_DENIED);
    await eventually(async () => expect(await site.profile(id)).toBeNull());
    expect((await next.sent('/boot')).map(({ body }) => body.fpid)).toEqual([id]);
    await eventually(async () => expect(await next.page.evaluate('localStorage.length')).toBe(0));
    expect((await state(next.page))?.gtm).toBe('waiting');
    expect(await next.sent('/c/')).toEqual([]);
  });

  test('deletes the tag server’s cookie that scripts can’t read, and later hits don’t send it', async () => {
    await using browser = await chromium.newContext();
    const { site, open } = await consentShop(stage, {}, 'custom');
    const at = await open(browser, GRANTED);
    const id = await identified(at);
    const hit = () =>
      at.page.evaluate(
        `fetch('${site.url.custom}/g/collect?v=2',{method:'POST',credentials:'include',mode:'no-cors'})`,
      );
    await hit();
    await eventually(async () => expect(await cookie(browser, 'FPID')).toMatchObject({ httpOnly: true }));
    await eventually(async () =>
      expect(await site.profile(id)).toMatchObject({
        cookies: expect.arrayContaining([expect.objectContaining({ name: 'FPID' })]),
      }),
    );
    await updateConsent(at, ALL_DENIED);
    await forgotten(at);
    expect(await cookie(browser, 'FPID')).toBeUndefined();
    await hit();
    const last = (await at.sent('/g/collect')).at(-1);
    expect(String(last?.headers.cookie)).not.toMatch(/FPID|_ga|_fpid/);
  });

  test('still takes effect after an answer of an unknown form', async () => {
    await using browser = await chromium.newContext();
    const { open } = await consentShop(stage);
    await browser.route(/\/boot$/, (route) =>
      route.fulfill({ json: { container: { scriptUrl: 'no address' }, profile: null } }),
    );
    const at = await open(browser, GRANTED);
    await eventually(async () => expect((await at.sent('/boot')).length).toBe(1));
    await browser.unrouteAll();
    await eventually(async () => expect((await state(at.page))?.gtm).toBe('loaded'));
    await updateConsent(at, ALL_DENIED);
    await forgotten(at);
    expect(at.errors).toEqual([]);
  });

  test('for ad_user_data or ad_personalization alone is sent to the edge', async () => {
    await using browser = await chromium.newContext();
    const { open } = await consentShop(stage);
    const at = await open(browser, GRANTED);
    const id = await identified(at);
    await updateConsent(at, `{ad_user_data:'denied'}`);
    await eventually(async () => expect(await at.sent('/boot')).toHaveLength(2));
    expect((await at.sent('/boot'))[1]?.body).toMatchObject({
      fpid: id,
      consent: { ad_user_data: 'denied', ad_storage: 'granted', ad_personalization: 'granted' },
    });
    await updateConsent(at, `{ad_personalization:'denied'}`);
    await eventually(async () => expect(await at.sent('/boot')).toHaveLength(3));
    expect((await state(at.page))?.choices).toMatchObject({ ad_personalization: 'denied' });
  });

  test('doesn’t cause reports of blockers: each session has one, once analytics are granted', async () => {
    await using browser = await chromium.newContext();
    const { site, open } = await consentShop(stage, { consent: 'required' });
    const reported = async () =>
      (await stage.detections()).filter((one) => Object(one).site === site.manifest.site).length;
    const ads = gtag(`gtag('consent','update',{ad_storage:'granted'})`);
    await identified(await open(browser, ads));
    await identified(await open(browser, ads));
    const third = await open(browser, ads);
    await identified(third);
    expect(await third.sent('/mark-session-detection')).toEqual([]);
    await updateConsent(third, ALL_GRANTED);
    await eventually(async () => expect(await reported()).toBe(1));
    const fourth = await open(browser, GRANTED);
    await identified(fourth);
    await eventually(async () => expect((await state(fourth.page))?.gtm).toBe('loaded'));
    expect(await fourth.sent('/mark-session-detection')).toEqual([]);
    expect(await reported()).toBe(1);
  });
});
