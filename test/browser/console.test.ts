import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';
import { creation } from '../support/management/world.ts';

describeWith('chromium', 'the console', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let client: string;
  let shop: { id: string };

  beforeAll(async () => {
    stage = await ConsoleStage.open();
    chromium = await startChromium();
    client = await stage.world.client('Acme');
    const made = await stage.world.call('POST', '/server-containers', {
      as: 'owner',
      body: creation(client, 'acme.example'),
    });
    shop = made.body;
    await eventually(async () => {
      const { body } = await stage.world.call('GET', `/server-containers/${shop.id}`, { as: 'owner' });
      expect(body.status).toBe('active');
    });
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  test('logs in with one click, and shows the way from the overview to a container', async () => {
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner');
    expect(new URL(page.url()).pathname).toBe('/console');
    await page.getByRole('link', { name: 'Acme Shop' }).waitFor();
    await page.getByRole('link', { name: 'Containers', exact: true }).click();
    await page.getByRole('link', { name: 'Acme Shop' }).click();
    await page.waitForURL(`${stage.url}/console/containers/${shop.id}`);
    for (const name of ['Traffic', 'Snippet', 'History']) {
      await page.getByRole('heading', { name, exact: true }).waitFor();
    }
    await page.getByText('Create acme-shop').waitFor();
    expect(complaints).toEqual([]);
  });
});
