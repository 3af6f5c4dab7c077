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
  });
});
