import type { BrowserContext, Page, Route } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type BrowserSite, type BrowserStage, startBrowserStage } from '../support/browser/stage.ts';
import { ran, settled, state, visit } from '../support/browser/visit.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

const VENDOR = /^https:\/\/www\.googletagmanager\.com\/gtm\.js\?id=/;
/** Longer than every timeout of the page's scripts, in milliseconds. */
const LATER = 60_000;

/** The sources of the page's loaders and web tags, from the script elements of its document. */
async function scripts(page: Page) {
  const sources: string[] = await page.evaluate('[...document.scripts].map(({ src }) => src)');
  return {
    loaders: sources.filter((source) => source.includes('/l/')),
    webTags: sources.filter((source) => VENDOR.test(source) || source.includes('/c/')),
  };
}

describeWith('chromium', 'whatever the edge does, a page has its web tag once', () => {
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

  /** A page with the site's snippet, in a browser whose timers run only when a test advances the clock. */
  async function open(
    html: (site: BrowserSite) => string = ({ snippet }) => snippet(),
    arrange: (browser: BrowserContext) => Promise<unknown> = async () => undefined,
  ) {
    const browser = await chromium.newContext();
    await arrange(browser);
    const now = Date.now();
    await browser.clock.install({ time: now });
    await browser.clock.pauseAt(now + LATER);
    const site = await stage.site();
    stage.serve('/', html(site));
    const { page, errors } = await visit(browser, `${site.url.shop}/`);
    return {
      page,
      errors,
      site,
      ownTag: `${site.url.edge}/c/${site.manifest.domains[0]?.token}.js`,
      [Symbol.asyncDispose]: () => browser.close(),
    };
  }

  const twice = ({ snippet }: BrowserSite) => snippet() + snippet();

  test.each<[string, (site: BrowserSite) => string]>([
    ['one snippet', ({ snippet }) => snippet()],
    ['two snippets', twice],
    ['two snippets of different domains', ({ snippet }) => snippet() + snippet({ webTagId: 'GTM-OTHER01' })],
  ])('if the edge is healthy, with %s, from the edge; the vendor gets no request', async (_name, html) => {
    const before = stage.direct();
    await using at = await open(html);
    expect(await settled(at.page)).toMatchObject({ gtm: 'loaded', edge: at.site.url.edge });
    await at.page.clock.fastForward(LATER);
    const { loaders, webTags } = await scripts(at.page);
    expect(webTags).toEqual([at.ownTag]);
    expect(loaders).toHaveLength(1);
    expect(await ran(at.page)).toEqual({ starts: 1, containers: ['GTM-ABC1234'] });
    expect(stage.direct() - before).toBe(0);
    expect(at.errors).toEqual([]);
  });

  const on = (path: RegExp, fault: 'refuse' | 'fail') => (asked: string) =>
    path.test(asked) ? fault : undefined;

  test.each<[string, (path: string) => 'refuse' | 'fail' | undefined, ((site: BrowserSite) => string)?]>([
    ['it can’t be reached', on(/./, 'refuse')],
    ['it fails', on(/./, 'fail')],
    ['it fails, with the snippet twice', on(/./, 'fail'), twice],
    ['it fails on the bootstrap', on(/^\/boot/, 'fail')],
    ['it is unreachable from the bootstrap on', on(/^\/boot/, 'refuse')],
    ['it fails on the web tag', on(/^\/c\//, 'fail')],
    ['it doesn’t know the token', on(/never/, 'fail'), ({ snippet }) => snippet({ loaderToken: 'lt_gone' })],
  ])('if %s, as the vendor’s script', async (_name, fault, html) => {
    const before = stage.direct();
    stage.fault = fault;
    await using at = await open(html);
    await eventually(async () => expect((await ran(at.page)).containers).toEqual(['GTM-ABC1234']));
    expect(await settled(at.page)).toMatchObject({ gtm: 'loaded' });
    await at.page.clock.fastForward(LATER);
    expect((await scripts(at.page)).webTags.filter((source) => VENDOR.test(source))).toHaveLength(1);
    expect((await ran(at.page)).starts).toBe(1);
    expect(stage.direct() - before).toBe(1);
    expect(at.errors).toEqual([]);
  });

  describe.each([['loader', /^\/l\//] as const, ['bootstrap', /^\/boot/] as const])(
    'if it is slow with the %s',
    (_name, held) => {
      const isHeld = () => eventually(() => expect(stage.held()).toBeGreaterThan(0));

      test('but within the page’s timeout, from the edge', async () => {
        stage.fault = (path) => (held.test(path) ? 'hold' : undefined);
        await using at = await open();
        await isHeld();
        stage.fault = () => undefined;
        stage.release();
        expect((await settled(at.page))?.gtm).toBe('loaded');
        await at.page.clock.fastForward(LATER);
        expect((await scripts(at.page)).webTags).toEqual([at.ownTag]);
      });

      test('beyond the timeout, as the vendor’s script; the edge’s late answer loads no second one', async () => {
        const before = stage.direct();
        stage.fault = (path) => (held.test(path) ? 'hold' : undefined);
        await using at = await open();
        await isHeld();
        expect((await scripts(at.page)).webTags).toEqual([]);
        await at.page.clock.fastForward(3000);
        await settled(at.page);
        stage.fault = () => undefined;
        stage.release();
        await eventually(async () => expect((await state(at.page))?.profile?.isNew).toBe(true));
        await at.page.clock.fastForward(LATER);
        expect((await scripts(at.page)).webTags).toEqual([expect.stringMatching(VENDOR)]);
        expect(await ran(at.page)).toEqual({ starts: 1, containers: ['GTM-ABC1234'] });
        expect(stage.direct() - before).toBe(1);
        expect(at.errors).toEqual([]);
      });
    },
  );

  test.each([
    ['nothing', /./, 'pending'],
    ['no loader', /^\/l\//, 'pending'],
    ['no bootstrap', /^\/boot/, 'pending'],
    ['no web tag', /^\/c\//, 'edge'],
  ])(
    'and an edge that accepts connections and answers %s doesn’t delay the page’s load event',
    async (_name, held, gtm) => {
      stage.fault = (path) => (held.test(path) ? 'hold' : undefined);
      // This image delays the load event until the edge holds a request.
      const image = Promise.withResolvers<Route>();
      await using at = await open(
        ({ snippet }) => `${snippet()}<img src="/last.png">`,
        (browser) => browser.route('**/last.png', (route) => image.resolve(route)),
      );
      await eventually(() => expect(stage.held()).toBeGreaterThan(0));
      await (await image.promise).fulfill({ status: 404 });
      await at.page.waitForLoadState('load');
      expect((await state(at.page))?.gtm ?? 'pending').toBe(gtm);
      expect(stage.held()).toBeGreaterThan(0);
    },
  );

  test('and a vendor that answers nothing doesn’t delay the page’s load event either', async () => {
    stage.fault = on(/./, 'refuse');
    const asked = Promise.withResolvers<void>();
    await using at = await open(undefined, (browser) => browser.route(VENDOR, () => asked.resolve()));
    await asked.promise;
    await at.page.waitForLoadState('load');
    expect((await state(at.page))?.gtm).toBe('direct');
  });

  test('or, if neither edge nor vendor answers, works without it and has the state failed', async () => {
    stage.fault = on(/./, 'refuse');
    await using at = await open(
      ({ snippet }) => `${snippet()}<script>window.shopWorks = true</script>`,
      (browser) => browser.route(VENDOR, (route) => route.abort()),
    );
    expect((await settled(at.page))?.gtm).toBe('failed');
    await at.page.clock.fastForward(LATER);
    expect((await scripts(at.page)).webTags).toEqual([expect.stringMatching(VENDOR)]);
    expect((await state(at.page))?.gtm).toBe('failed');
    expect(await at.page.evaluate('window.shopWorks')).toBe(true);
    expect(at.errors).toEqual([]);
  });
});
