import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { World } from '../support/management/world.ts';

describeWith('chromium', 'the pages of the management API', () => {
  let world: World;
  let url: string;
  beforeAll(async () => {
    world = await World.open();
    url = (await world.management?.app.listen({ host: '127.0.0.1', port: 0 })) ?? '';
  });
  afterAll(() => world?.close());

  test('don’t name Swagger UI, and the root redirects to the console', async () => {
    const root = await fetch(`${url}/`, { redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/console']);
    expect(await (await fetch(`${url}/docs/static/theme/favicon.svg`)).text()).toContain('<svg');
    expect(await (await fetch(`${url}/docs`)).text()).not.toContain('Swagger UI');
  });

  test('show every endpoint without other network access, and don’t violate their own security policy', async () => {
    await using browser = await launchChromium({ hosts: { '127.0.0.1': '127.0.0.1', '*': '127.0.0.1:9' } });
    const page = await browser.newPage();
    const foreign: string[] = [];
    const complaints: string[] = [];
    page.on('request', (request) => {
      if (!request.url().startsWith(`${url}/`) && !request.url().startsWith('data:'))
        foreign.push(request.url());
    });
    page.on('requestfailed', (request) => complaints.push(`${request.url()} failed`));
    page.on('console', (message) => {
      if (message.type() === 'error') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    await page.goto(`${url}/docs`);
    const { body: document } = await world.call('GET', '/openapi.json');
    const endpoints = Object.values<object>(document.paths).flatMap((methods) => Object.keys(methods));
    await eventually(async () => expect(await page.locator('.opblock').count()).toBe(endpoints.length));
    await page.locator('#operations-containers-createContainer .opblock-summary').click();
    await eventually(async () =>
      expect(
        await page.locator('#operations-containers-createContainer .opblock-body').textContent(),
      ).toContain('containerConfigB64'),
    );
    expect([foreign, complaints]).toEqual([[], []]);
    await page.locator('#operations-containers-createContainer .opblock-summary').click();
    expect(await page.title()).toBe('Tagyard API');
    const logo = page.locator('.topbar a.link img');
    const isDrawn = (image: { naturalWidth: number }) => image.naturalWidth > 0;
    expect(await logo.evaluate(isDrawn as () => boolean)).toBe(true);
    const bare = document.tags.filter(({ description }: { description?: string }) => !description);
    expect(bare).toEqual([]);
    const groups = await page.locator('.opblock-tag').evaluateAll((all) => all.map((one) => one.id));
    expect(groups).toEqual(document.tags.map(({ name }: { name: string }) => `operations-tag-${name}`));
    await page.screenshot({ path: 'test/screenshots/api-pages.png' });
  });
});
