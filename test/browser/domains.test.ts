import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, ran, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';

describeWith('chromium', 'a site of two domains', () => {
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

  /** A site with a page on each of its domains, and a custom domain under the second one. */
  async function twoDomains(name: string, multi: boolean) {
    const second = `${name}-too.example`;
    const domains = [
      { domain: `${name}.example`, webTagId: 'GTM-FIRST01', token: `ct_first00000000000${name}` },
      { domain: second, webTagId: 'GTM-SECOND1', token: `ct_second0000000000${name}` },
    ];
    const site = await stage.site({
      domains,
      customDomains: [`metrics.${second}`],
      features: { multi_domain: multi },
    });
    stage.serve('/first', site.snippet());
    stage.serve('/second', site.snippet({ domain: 1 }));
    stage.serve('/second-custom', site.snippet({ domain: 1, edgeUrl: site.url.custom }));
    return { site, first: `https://www.${name}.example/first`, second: `https://www.${second}` };
  }

  test('with multi_domain, each domain has its own web tag, id and cookie', async () => {
    await using browser = await chromium.newContext();
    const { site, first, second } = await twoDomains('on', true);
    const before = stage.direct();
    const ids = new Map<string, string | undefined>();
    for (const [url, webTag, domain, token] of [
      [first, 'GTM-FIRST01', '.on.example', site.manifest.domains[0]?.token],
      [`${second}/second`, 'GTM-SECOND1', '.on-too.example', site.manifest.domains[1]?.token],
    ] as const) {
      const { page, asked, errors } = await visit(browser, url);
      expect(await settled(page)).toMatchObject({ gtm: 'loaded', edge: site.url.edge });
      expect(asked).toContain(`${site.url.edge}/c/${token}.js`);
      expect((await ran(page)).containers).toEqual([webTag]);
      // Without the cookie that the detection sets for a moment, to see whether the browser keeps cookies.
      const cookies = (await browser.cookies(url)).filter(({ name }) => name !== 'tagyard_probe');
      expect(cookies).toMatchObject([
        { name: '_fpid', domain, path: '/' },
        { name: 'tagyard_session', domain, path: '/' },
      ]);
      expect(errors).toEqual([]);
      ids.set(domain, (await booted(page))?.profile?.id);
    }
    expect(new Set(ids.values()).size).toBe(2);
    expect(stage.direct() - before).toBe(0);

    // The custom domain under the second domain is first-party and gets the id that the loader wrote.
    const { page } = await visit(browser, `${second}/second-custom`);
    await settled(page);
    expect((await booted(page))?.profile).toEqual({ id: ids.get('.on-too.example'), isNew: false });
  });

  test.each([
    ['the loader of the edge hostname', 'off', '/second'],
    ['the loader of a custom domain under it', 'off2', '/second-custom'],
  ])(
    'without multi_domain, only the primary domain boots; the second, with %s, loads the vendor’s script once and has no cookie',
    async (_name, name, path) => {
      await using browser = await chromium.newContext();
      const { first, second } = await twoDomains(name, false);
      const before = stage.direct();
      const primary = await visit(browser, first);
      expect((await settled(primary.page))?.gtm).toBe('loaded');
      expect((await booted(primary.page))?.profile?.isNew).toBe(true);
      expect(stage.direct() - before).toBe(0);

      const { page, asked, errors } = await visit(browser, second + path);
      expect((await settled(page))?.gtm).toBe('loaded');
      expect(await booted(page)).toBeNull();
      expect(await ran(page)).toEqual({ starts: 1, containers: ['GTM-SECOND1'] });
      expect(asked.filter((url) => url.includes('/c/'))).toEqual([]);
      expect(await browser.cookies(second)).toEqual([]);
      expect(stage.direct() - before).toBe(1);
      expect(errors).toEqual([]);
    },
  );
});
