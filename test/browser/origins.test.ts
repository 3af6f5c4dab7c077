import type { BrowserContext } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { booted, settled, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';

const VICTIM = 'a'.repeat(32);

/** What a page's script can read of an answer, or the name of the error that it gets. */
type Learned = { status: number; type: string; code?: string } | string;

describeWith('chromium', 'the origins that the edge answers', () => {
  let stage: BrowserStage;
  let browser: BrowserContext;
  beforeAll(async () => {
    stage = await startBrowserStage();
    browser = await launchChromium(stage.browser);
    stage.serve('/blank', '<title>Any page</title>');
  });
  afterAll(async () => {
    await browser.close();
    await stage.close();
  });

  /** Calls `fetch` once, in a script on a page at `from`. */
  async function ask(from: string, url: string, init: object): Promise<Learned> {
    const { page } = await visit(browser, `${from}/blank`);
    const script = `fetch(${JSON.stringify(url)}, ${JSON.stringify(init)}).then(
      async (response) => {
        const { code } = await response.json().catch(() => ({}));
        return { status: response.status, type: response.type, ...(code ? { code } : {}) };
      },
      (error) => error.name,
    )`;
    const learned: Learned = await page.evaluate(script);
    await page.close();
    return learned;
  }

  const json = (body: object) => ({
    method: 'POST',
    credentials: 'include',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const bootBody = ({ manifest, url }: BrowserSite) => ({
    loader: manifest.loaderToken,
    url: `${url.shop}/`,
  });
  const markBody = ({ manifest }: BrowserSite) => ({
    loader: manifest.loaderToken,
    session: { id: 'b'.repeat(32) },
    signals: { adblock: true },
  });

  describe.each([['/boot', bootBody, 200] as const, ['/mark-session-detection', markBody, 202] as const])(
    '%s, with credentials',
    (path, body, status) => {
      test.each<[string, (domain: string) => string, 'read' | 'refused']>([
        ['the domain itself', (domain) => `https://${domain}`, 'read'],
        ['a host under it', (domain) => `https://www.${domain}`, 'read'],
        ['a host several levels under it', (domain) => `https://a.b.${domain}`, 'read'],
        ['another owner’s domain', () => 'https://www.rival.example', 'refused'],
        ['a domain with the same ending', (domain) => `https://not${domain}`, 'refused'],
        ['a domain with the same beginning', (domain) => `https://${domain}.rival.example`, 'refused'],
      ])('a page of %s: $2', async (_name, from, outcome) => {
        const site = await stage.site();
        const origin = from(site.manifest.domains[0]?.domain ?? '');
        for (const edge of [site.url.edge, site.url.custom]) {
          expect(await ask(origin, edge + path, json(body(site)))).toEqual(
            outcome === 'read' ? { status, type: 'cors' } : 'TypeError',
          );
        }
      });
    },
  );

  test('the site’s pages may read errors, and may send the preview’s header but no other custom header', async () => {
    const site = await stage.site();
    const boot = (body: object, headers: Record<string, string> = {}) => {
      const init = json({ ...bootBody(site), ...body });
      return ask(site.url.shop, `${site.url.edge}/boot`, {
        ...init,
        headers: { ...init.headers, ...headers },
      });
    };
    expect(await boot({ loader: 'lt_gone' })).toEqual({ status: 404, type: 'cors', code: 'unknown_loader' });
    expect(await boot({ url: 1 })).toEqual({ status: 400, type: 'cors', code: 'malformed_request' });
    expect(await boot({}, { 'x-gtm-server-preview': 'ZW52' })).toMatchObject({ status: 200 });
    expect(await boot({}, { 'x-other': '1' })).toBe('TypeError');
  });

  test('the cookie with the profile’s id is sent to a custom domain', async () => {
    const site = await stage.site();
    stage.serve('/', site.snippet({ edgeUrl: site.url.custom }));
    const { page } = await visit(browser, `${site.url.shop}/`);
    await settled(page);
    const id = (await booted(page))?.profile?.id;
    const profile: unknown = await page.evaluate(
      `fetch(${JSON.stringify(`${site.url.custom}/boot`)}, ${JSON.stringify(json(bootBody(site)))})
        .then((response) => response.json()).then(({ profile }) => profile)`,
    );
    expect(profile).toEqual({ id, isNew: false });
  });

  test.each([
    ['text/plain', (body: string) => ({ headers: { 'content-type': 'text/plain' }, body })] as const,
    [
      'a form',
      (body: string) => ({ headers: { 'content-type': 'application/x-www-form-urlencoded' }, body }),
    ] as const,
  ])('a foreign page that sends %s, which needs no preflight, changes nothing', async (_name, sending) => {
    const site = await stage.site();
    const key = `${site.manifest.site}:${VICTIM}`;
    const record = JSON.stringify({ version: 1, session: null, cookies: [] });
    await stage.edge.kv.COOKIES.put(key, record);
    const deletes = {
      ...bootBody(site),
      fpid: VICTIM,
      consent: { ad_storage: 'denied', analytics_storage: 'denied' },
    };
    const init = {
      method: 'POST',
      credentials: 'include',
      mode: 'no-cors',
      ...sending(JSON.stringify(deletes)),
    };
    const before = stage.asked().length;
    expect(await ask('https://www.rival.example', `${site.url.edge}/boot`, init)).toEqual({
      status: 0,
      type: 'opaque',
    });
    expect(
      stage
        .asked()
        .slice(before)
        .filter(({ path }) => path === '/boot'),
    ).toMatchObject([{ method: 'POST', headers: { origin: 'https://www.rival.example' } }]);
    expect(await stage.edge.kv.COOKIES.get(key)).toBe(record);
  });
});
