import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { FORWARDERS, type ForwarderKind } from '../support/forwarders/forwarder.ts';
import { type ForwardedShop, startForwardedShop } from '../support/forwarders/shop.ts';

const PAGE = `<script>document.cookie = 'session=s3cret; path=/'</script>`;

describeWith(['chromium', 'nginx', 'apache', 'caddy', 'haproxy', 'mount'], 'pages behind a forwarder', () => {
  let stage: BrowserStage;
  let browser: BrowserContext;
  const shops = new Map<ForwarderKind, ForwardedShop>();
  beforeAll(async () => {
    stage = await startBrowserStage();
    for (const kind of FORWARDERS) shops.set(kind, await startForwardedShop(stage, kind, { page: PAGE }));
    const own = [...shops.values()].map(({ host, port }) => [host, `127.0.0.1:${port}`]);
    browser = await launchChromium({
      ...stage.browser,
      hosts: { ...Object.fromEntries(own), ...stage.browser.hosts },
      thirdPartyCookies: false,
    });
  });
  afterAll(async () => {
    await browser.close();
    for (const shop of shops.values()) await shop.close();
    await stage.close();
  });

  test.each(FORWARDERS)('%s: everything comes from the page’s own host, with its cookies', async (kind) => {
    const shop = shops.get(kind);
    if (shop === undefined) throw new Error(`${kind} was not started`);
    const base = `https://${shop.host}${shop.path}`;
    const { page, asked, errors } = await visit(browser, `https://${shop.host}/`);
    expect((await settled(page))?.gtm).toBe('loaded');
    const answer = await booted(page);
    expect(answer?.profile?.id).toMatch(/./);
    await page.evaluate(`fetch('${shop.path}/g/collect?v=2&en=seen', { method: 'POST', keepalive: true })`);
    const [arrived] = await eventually(async () => {
      const hits = await shop.arrived('/g/collect');
      expect(hits.length).toBeGreaterThan(0);
      return hits;
    });

    expect(errors).toEqual([]);
    expect(new Set(asked.map((url) => new URL(url).host))).toEqual(new Set([shop.host]));
    const paths = asked.map((url) => url.replace(base, '').replace(/\?.*/, ''));
    expect(paths).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^\/l\/lt_/),
        '/boot',
        expect.stringMatching(/^\/c\/ct_/),
      ]),
    );

    const [domain] = shop.site.manifest.domains.map((entry) => entry.domain);
    const cookies = await browser.cookies(`https://${shop.host}/`);
    expect(cookies.find(({ name }) => name === '_fpid')).toMatchObject({
      domain: `.${domain}`,
      value: answer?.profile?.id,
    });
    expect(arrived?.headers.cookie).toContain(`_fpid=${answer?.profile?.id}`);
    expect(arrived?.headers.cookie).not.toContain('s3cret');
    expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': shop.host });
  });
});
