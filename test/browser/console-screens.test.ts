import axeCore from 'axe-core';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { findingsOf, OPERATORS_SCREENS, screensOf, settled } from '../support/console/pages.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';

const SCRIPT = '<img src=x onerror="window.injected=1"><script>window.injected=1</script>';
const OPEN_ALL = "for (const one of document.querySelectorAll('details')) one.open = true";
const WIDTHS = '[document.documentElement.scrollWidth, document.documentElement.clientWidth]';
const SCROLLED_HEIGHT = 'document.documentElement.scrollHeight';
const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft';

describeWith('chromium', 'the console’s screens', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let client: string;
  let shop: string;

  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
    client = await stage.world.client('Acme');
    shop = await stage.container(client, 'acme.example', { name: LONG });
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  test.each([
    ['light', { width: 1280, height: 900 }],
    ['dark', { width: 390, height: 844 }],
  ] as const)('satisfy axe and their security policy, %s', async (colorScheme, viewport) => {
    await using visitor = await chromium.newContext({ colorScheme, viewport });
    await visitor.addInitScript({ content: axeCore.source });
    const { page, complaints } = await stage.logIn(visitor, 'owner');
    const findings: unknown[] = [];
    for (const path of screensOf(shop, client)) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
      for (const finding of await findingsOf(page)) findings.push([path, finding]);
      const [shown, available] = await page.evaluate<number[]>(WIDTHS);
      if (shown !== available) findings.push([path, `is ${shown} wide`]);
    }
    expect(findings).toEqual([]);
    expect(complaints).toEqual([]);
    // The last of the screens has one line, so there is nothing to scroll to.
    expect(await page.evaluate(SCROLLED_HEIGHT)).toBe(viewport.height);
    const ground = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
    expect(ground).toBe(colorScheme === 'dark' ? 'rgb(14, 17, 22)' : 'rgb(246, 247, 249)');
  });

  test('of operators satisfy axe and their security policy', async () => {
    await using visitor = await chromium.newContext();
    await visitor.addInitScript({ content: axeCore.source });
    const { page, complaints } = await stage.logIn(visitor, 'root');
    for (const path of OPERATORS_SCREENS) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
      expect([path, await findingsOf(page)]).toEqual([path, []]);
    }
    expect(complaints).toEqual([]);
  });

  test('show text of tenants, commits and addresses as text', async () => {
    const { world } = stage;
    const evil = await world.client(SCRIPT);
    const id = await stage.container(evil, 'evil.example', { name: `Shop ${SCRIPT}`.slice(0, 100) });
    await world.call('PATCH', `/server-containers/${id}`, {
      as: 'owner',
      body: { modules: { server_proxy: { dataLayers: ['evil'] } } },
    });
    const clone = await world.clone();
    await world.git(clone, '-c', `user.name=${SCRIPT}`, 'commit', '--allow-empty', '-m', `Say ${SCRIPT}`);
    await world.git(clone, 'push', '--quiet');
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner');
    const query = `?q=${encodeURIComponent(SCRIPT)}&status=${encodeURIComponent(SCRIPT)}`;
    for (const path of [...screensOf(id, evil), `/console/containers${query}`, `/console/${SCRIPT}`]) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
      await page.evaluate(OPEN_ALL);
      expect([path, await page.evaluate("'injected' in window")]).toEqual([path, false]);
      expect(await page.locator('img').count()).toBe(0);
    }
    expect(complaints).toEqual([]);
  });

  test('are served with a strict policy, and their files may be cached for ever', async () => {
    const page = await fetch(`${stage.url}/console/containers/some/where`, {
      headers: { 'accept-encoding': 'br' },
    });
    expect(page.status).toBe(200);
    const policy = page.headers.get('content-security-policy') ?? '';
    expect(policy).not.toContain('unsafe');
    expect(policy).toContain("require-trusted-types-for 'script'");
    expect(page.headers.get('content-encoding')).toBe('br');
    const [, script = ''] = /src="([^"]+\.js)"/.exec(await page.text()) ?? [];
    const asset = await fetch(`${stage.url}${script}`);
    expect(asset.headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    expect((await fetch(`${stage.url}/console/assets/none.js`)).status).toBe(404);
  });

  test('list 10,000 containers page by page, and find one of them', async () => {
    await sql`insert into containers (id, site_id, client_id, status, manifest)
      select gen_random_uuid(), 'seed-' || n, client_id, 'active',
        jsonb_set(jsonb_set(manifest, '{name}', to_jsonb('Seed ' || n)), '{site}', to_jsonb('seed-' || n))
      from containers, generate_series(1, 10000) as n where id = ${shop}`.execute(stage.world.owner);
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', '/console/containers');
    await page.getByText(/10,00\d containers/).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(50);
    const [first] = await page.locator('tbody tr a').allInnerTexts();
    await page.getByRole('button', { name: 'Next page' }).click();
    await eventually(async () =>
      expect(await page.locator('tbody tr a').first().innerText()).not.toBe(first),
    );
    expect(await page.locator('tbody tr').count()).toBe(50);
    await page.getByRole('searchbox').fill('Seed 7777');
    await eventually(async () =>
      expect(await page.locator('tbody tr a').allInnerTexts()).toEqual(['Seed 7777']),
    );
    expect(new URL(page.url()).searchParams.get('q')).toBe('Seed 7777');
  });
});
