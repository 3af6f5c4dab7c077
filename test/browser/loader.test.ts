import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { type EdgePage, startEdgePage } from '../support/browser/edge-page.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';

describeWith('chromium', 'the loader', () => {
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

  test('twice on one page sends one bootstrap and one report, and runs the web tag once', async () => {
    await using browser = await chromium.newContext();
    const page = await browser.newPage();
    await world.stage.seen();
    const marked = page.waitForResponse((response) => response.url().endsWith('/mark-session-detection'));
    await page.goto(world.url.twice);
    await marked;
    expect(await page.evaluate('window.ran')).toBe(1);
    expect(await page.evaluate(`dataLayer.filter(({ event }) => event === 'gtm.js').length`)).toBe(1);
    const routes = (await world.stage.seen()).records.map(({ method, route }) => `${method} ${route}`);
    expect(routes.filter((route) => route === 'POST /boot')).toHaveLength(1);
    expect(routes.filter((route) => route === 'POST /mark-session-detection')).toHaveLength(1);
    expect(world.direct()).toBe(0);
  });

  test('in a sandboxed frame without storage and with an opaque origin loads the vendor’s script once', async () => {
    await using browser = await chromium.newContext();
    const page = await browser.newPage();
    const errors: string[] = [];
    page.on('pageerror', (error) => errors.push(error.message));
    const before = world.direct();
    await page.goto(world.url.framed);
    const frame = page.frames().find((each) => each !== page.mainFrame());
    await eventually(async () =>
      expect(await frame?.evaluate('window.tagyard && window.tagyard.gtm')).toBe('loaded'),
    );
    expect(await frame?.evaluate('window.ran')).toBe(1);
    expect(world.direct() - before).toBe(1);
    expect(errors).toEqual([]);
  });
});
