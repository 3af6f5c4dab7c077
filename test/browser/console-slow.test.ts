import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { settled } from '../support/console/pages.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { WATCH } from '../support/console/watch.ts';

/** A bad mobile network: milliseconds, and bytes a second. */
const SLOW = { offline: false, latency: 250, downloadThroughput: 100_000, uploadThroughput: 50_000 };
/** Cumulative layout shift that no person notices. */
const MOST_SHIFT = 0.02;
/** That of a container’s tabs, whose sections have heights of their own. */
const MOST_SHIFT_OF_TABS = 0.05;
const ANIMATION = "getComputedStyle(document.querySelector('.skeleton span')).animationName";
/** Resolves when the page has drawn what it knows. */
const DRAWN = 'new Promise((done) => requestAnimationFrame(() => setTimeout(done)))';

describeWith('chromium', 'the console for a person with a slow network', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let shop: string;

  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
    shop = await stage.container(await stage.world.client('Acme'), 'acme.example');
    // More containers than a skeleton has rows.
    await sql`insert into containers (id, site_id, client_id, status, health, manifest)
      select gen_random_uuid(), 'seed-' || n, client_id, 'active', 'healthy',
        jsonb_set(jsonb_set(manifest, '{name}', to_jsonb('Seed ' || n)), '{site}', to_jsonb('seed-' || n))
      from containers, generate_series(1, 30) as n where id = ${shop}`.execute(stage.world.owner);
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  const slow = async (page: Page) => {
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Network.enable');
    await devtools.send('Network.emulateNetworkConditions', SLOW);
  };

  /** The layout shift of a page from its first placeholders to all of its data. */
  const shiftOf = async (path: string, width: number) => {
    await using visitor = await chromium.newContext({ viewport: { width, height: 900 } });
    await stage.logIn(visitor, 'owner');
    await visitor.addInitScript({ content: WATCH });
    const page = await visitor.newPage();
    await slow(page);
    await page.goto(`${stage.url}${path}`, { waitUntil: 'commit' });
    await page
      .getByRole('status', { name: /^Loading/ })
      .first()
      .waitFor();
    await settled(page);
    await page.evaluate(DRAWN);
    const { shift, shifts } = await page.evaluate<{ shift: number; shifts: unknown[] }>(
      '({ ...window.watch })',
    );
    return { shift, shifts: JSON.stringify(shifts) };
  };

  test.each([
    ['the overview', () => '/console'],
    ['the list', () => '/console/containers'],
    ['a container', () => `/console/containers/${shop}`],
  ])('%s has placeholders at once, and nothing moves when the data arrive', async (_what, pathOf) => {
    const { shift, shifts } = await shiftOf(pathOf(), 1_280);
    expect(shift, shifts).toBeLessThan(MOST_SHIFT);
  });

  test.each([
    ['domains', 1_440],
    ['domains', 390],
  ] as const)('a container’s tab %s at %i px stays where it is when the data arrive', async (tab, width) => {
    const { shift, shifts } = await shiftOf(`/console/containers/${shop}/${tab}`, width);
    expect(shift, shifts).toBeLessThan(MOST_SHIFT_OF_TABS);
  });

  test.each([
    ['no-preference', 'pulse'],
    ['reduce', 'none'],
  ] as const)(
    'animates the placeholders unless the person prefers reduced motion: %s',
    async (reducedMotion, animation) => {
      await using visitor = await chromium.newContext({ reducedMotion });
      const { page } = await stage.logIn(visitor, 'owner');
      await page.route('**/server-containers?*', () => {}); // never answered
      await page.goto(`${stage.url}/console/containers`);
      await page.locator('.skeleton span').first().waitFor();
      expect(await page.evaluate(ANIMATION)).toBe(animation);
      await page.unrouteAll({ behavior: 'ignoreErrors' });
    },
  );

  test('keeps the matches of the newest search when an earlier one fails late', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner');
    const held = Promise.withResolvers<void>();
    const earlier = /server-containers\?.*q=earlier/;
    await page.route(earlier, (route) => held.promise.then(() => route.fulfill({ status: 500 })));
    await page.keyboard.press('Control+k');
    const field = page.getByRole('combobox', { name: 'Find a container or a screen' });
    await field.fill('earlier');
    await field.fill('Acme Shop');
    await page.getByRole('option', { name: /Acme Shop/ }).waitFor();
    const failed = page.waitForResponse(earlier);
    held.resolve();
    await (await failed).finished();
    await page.evaluate(DRAWN);
    expect(await page.getByRole('option', { name: /Acme Shop/ }).count()).toBe(1);
  });

  test('says without JavaScript that it needs JavaScript, and what works without it', async () => {
    await using visitor = await chromium.newContext({ javaScriptEnabled: false });
    const page = await visitor.newPage();
    await page.goto(`${stage.url}/console/containers`);
    expect(await page.locator('body').innerText()).toContain('The console needs JavaScript');
    expect(await page.locator('body').innerText()).toContain('The API and the command line');
  });
});
