import axeCore from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { findingsOf, heldOnce, settled } from '../support/console/pages.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';
import { CONFIG } from '../support/management/world.ts';
import { FACTS, serviceAccountJson } from '../support/service-account.ts';

describeWith('chromium', 'the forms of a container', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let shop: string;

  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
    const client = await stage.world.client('Acme');
    shop = await stage.container(client, 'acme.example');
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  const read = async () =>
    (await stage.world.call('GET', `/server-containers/${shop}`, { as: 'owner' })).body;
  const patch = (body: object) =>
    stage.world.call('PATCH', `/server-containers/${shop}`, { as: 'admin', body });
  const visit = async (subject: string, tab: string, colorScheme: 'light' | 'dark' = 'light') => {
    const visitor = await chromium.newContext({ colorScheme });
    await visitor.addInitScript({ content: axeCore.source });
    const path = `/console/containers/${shop}/${tab}`;
    const { page, complaints } = await stage.logIn(visitor, subject, path);
    await settled(page);
    return { visitor, page, complaints, [Symbol.asyncDispose]: () => visitor[Symbol.asyncDispose]() };
  };
  /** Confirms the plan in the dialog by the button `verb`. Returns the text of the dialog. */
  const confirmed = async (page: Page, verb: string) => {
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('columnheader', { name: 'After' }).waitFor();
    const text = await dialog.innerText();
    await dialog.getByRole('button', { name: verb, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    return text;
  };

  test('add a domain with a path of its own, show its configurations, and order the domains', async () => {
    await using visited = await visit('owner', 'domains', 'dark');
    const { page, complaints } = visited;
    await page.getByRole('button', { name: 'Add a domain' }).click();
    const form = page.getByRole('form', { name: 'New domain' });
    await form.getByLabel('Domain', { exact: true }).fill('shop.example');
    await form.getByLabel('Web tag id').fill('GTM-SHOP123');
    await form.getByLabel('Same origin').check();
    await form.getByLabel('Path').fill('/m3trics1');
    expect(await findingsOf(page)).toEqual([]);
    await form.getByRole('button', { name: 'Review the domain' }).click();
    expect(await confirmed(page, 'Add')).toContain('/m3trics1');
    const section = page.locator('#same-origin');
    await section.getByText('location ^~ /m3trics1/').waitFor();
    const nginx = section.getByRole('tab', { name: 'nginx' });
    await nginx.focus();
    await page.keyboard.press('ArrowRight');
    await section.getByRole('tab', { name: 'Apache', selected: true }).waitFor();
    expect(await section.getByRole('tabpanel').innerText()).toContain('/m3trics1/');
    const { forwarderToken: before } = (await read()).domains[1].sameOrigin;
    await section.getByRole('button', { name: 'New token…' }).click();
    await page.getByRole('dialog').getByLabel('Days of grace').fill('7');
    expect(await confirmed(page, 'Make it')).toMatch(/previous[\s\S]*until/);
    await eventually(async () =>
      expect((await read()).domains[1].sameOrigin.forwarderToken).not.toBe(before),
    );
    // The edge accepts one old token only; the refusal says until when.
    await section.getByRole('button', { name: 'New token…' }).click();
    await page.getByRole('dialog').getByRole('alert').getByText('an older token is accepted until').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Order', exact: true }).click();
    await page.getByRole('button', { name: 'Move shop.example up' }).click();
    await page.getByRole('button', { name: 'Review the order' }).click();
    await confirmed(page, 'Save');
    await eventually(async () =>
      expect((await read()).domains.map(({ domain }: { domain: string }) => domain)).toEqual([
        'shop.example',
        'acme.example',
      ]),
    );
    await settled(page);
    expect(await findingsOf(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test('keep settings that are typed but not saved while other tabs are shown', async () => {
    await using visited = await visit('owner', 'settings');
    const { page } = visited;
    const tab = (name: string) =>
      page.getByRole('navigation', { name: 'Parts of the container' }).getByRole('link', { name }).click();
    const days = page.getByLabel('Days that a consent lasts');
    const before = await days.inputValue();
    await days.fill('77');
    await tab('History');
    await page.getByRole('heading', { name: 'History' }).waitFor();
    await tab('Settings');
    await days.waitFor();
    expect(await days.inputValue()).toBe('77');
    await page.getByRole('button', { name: 'Discard' }).click();
    await tab('Domains');
    await page.getByRole('heading', { name: 'Domains', exact: true }).waitFor();
    await tab('Settings');
    await days.waitFor();
    expect(await days.inputValue()).toBe(before);
  });

  test('show another person’s change instead of overwriting it, and plan again on top of it', async () => {
    await using visited = await visit('owner', 'domains');
    const { page } = visited;
    await page.getByRole('button', { name: 'Edit acme.example', exact: true }).click();
    const form = page.getByRole('form', { name: 'Settings of acme.example' });
    await form.getByLabel('Web tag id').fill('GTM-MINE123');
    expect((await patch({ name: 'Acme of the admin' })).status).toBe(200);
    await form.getByRole('button', { name: 'Review changes' }).click();
    const dialog = page.getByRole('dialog');
    const notice = dialog.getByRole('alert');
    await notice.getByText('changed this container meanwhile').waitFor();
    await notice.getByText('Acme of the admin').waitFor();
    expect(await dialog.getByRole('button', { name: 'Save' }).count()).toBe(0);
    await dialog.getByRole('button', { name: 'Plan again on top of theirs' }).click();
    const plan = await confirmed(page, 'Save');
    expect(plan).toContain('GTM-MINE123');
    expect(plan).not.toContain('Acme of the admin');
    await eventually(async () => {
      const now = await read();
      expect([now.name, now.domains.at(-1).webTagId]).toEqual(['Acme of the admin', 'GTM-MINE123']);
    });
  });

  test('show each change since the page was read, or the newest five and that there are more', async () => {
    await using visited = await visit('owner', 'domains');
    const { page } = visited;
    const names = (first: number, count: number) =>
      Array.from({ length: count }, (_, index) => `Change ${first + index}`);
    const change = async (all: readonly string[]) => {
      for (const name of all) expect((await patch({ name })).status).toBe(200);
    };
    const dialog = page.getByRole('dialog');
    const notice = dialog.getByRole('alert');
    const shown = async () => {
      await notice.getByText('changed this container meanwhile').first().waitFor();
      return (await notice.locator('ins').allInnerTexts()).reverse();
    };
    await page.getByRole('button', { name: 'Edit acme.example', exact: true }).click();
    const form = page.getByRole('form', { name: 'Settings of acme.example' });
    await form.getByLabel('Web tag id').fill('GTM-MINE456');
    await change(names(1, 5));
    await form.getByRole('button', { name: 'Review changes' }).click();
    expect(await shown()).toEqual(names(1, 5));
    expect(await notice.getByText('earlier changes').count()).toBe(0);
    await dialog.getByRole('button', { name: 'Plan again on top of theirs' }).click();
    await dialog.getByRole('columnheader', { name: 'After' }).waitFor();
    await change(names(6, 6));
    await dialog.getByRole('button', { name: 'Save', exact: true }).click();
    expect(await shown()).toEqual(names(7, 5));
    await notice.getByText('The container’s history shows the earlier changes').waitFor();
  });

  test('take a service account’s key from a file, and name what is wrong with it', async () => {
    await using visited = await visit('owner', 'settings');
    const { page, complaints } = visited;
    const section = page.locator('#keys');
    const upload = (content: string, name = 'key.json') =>
      section
        .getByLabel('JSON key of the service account')
        .setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
    await upload('-----BEGIN PRIVATE KEY-----', 'key.pem');
    await section.getByRole('alert').getByText('key.pem is not a JSON key').waitFor();
    const dialog = page.getByRole('dialog');
    await upload(JSON.stringify(serviceAccountJson({ client_email: 'no address' })));
    await dialog
      .getByRole('alert')
      .getByText(/client.email must be an e-mail address/i)
      .first()
      .waitFor();
    await page.keyboard.press('Escape');
    await upload(JSON.stringify(serviceAccountJson()));
    const plan = await confirmed(page, 'Save');
    expect(plan).toContain(FACTS.clientEmail);
    expect(plan).not.toContain('PRIVATE');
    await section.getByText(FACTS.clientEmail).waitFor();
    await section.getByRole('button', { name: 'Remove the account' }).click();
    await confirmed(page, 'Remove');
    await eventually(async () => expect((await read()).serviceAccount).toBeNull());
    expect(complaints).toEqual([]);
  });

  test('set resources, the configuration, and rules for places', async () => {
    await using visited = await visit('owner', 'settings');
    const { page } = visited;
    const form = page.getByRole('form', { name: 'Settings' });
    await form.getByRole('button', { name: 'Add a rule for places' }).click();
    const rule = form.getByRole('group', { name: 'Rule 1' });
    await rule.getByLabel('Places').fill('de, us-CA,');
    await rule.getByLabel('Consent Mode').selectOption('basic');
    await form.getByLabel('Memory of the preview').fill('256m');
    // A value that is typed before the plan arrives needs a plan of its own.
    const release = await heldOnce(page, '**/server-containers/*?dryRun=1');
    const review = form.getByRole('button', { name: 'Review changes' });
    await review.click();
    await form.getByLabel('Memory of the preview').fill('512m');
    release();
    await eventually(async () => expect(await review.isEnabled()).toBe(true), {
      timeoutMs: 5_000,
    });
    expect(await page.getByRole('heading', { name: 'What this changes' }).count()).toBe(0);
    await review.click();
    await page.getByRole('heading', { name: 'What this changes' }).waitFor();
    expect(await findingsOf(page)).toEqual([]);
    await form.getByRole('button', { name: 'Save' }).click();
    await eventually(async () =>
      expect(await read()).toMatchObject({
        regions: [{ places: ['DE', 'US-CA'], consent: 'required', consentMode: 'basic' }],
        resources: { preview: { memory: '512m' } },
      }),
    );
    const keys = page.locator('#keys');
    await keys.getByText('Replace the container configuration').click();
    await keys.getByLabel('Container configuration').fill('not one');
    await keys.getByText('This is not a container configuration').waitFor();
    await keys.getByLabel('Container configuration').fill(CONFIG);
    await keys.getByText('GTM-SRV12345').waitFor();
    await keys.getByRole('button', { name: 'Review the configuration' }).click();
    expect(await confirmed(page, 'Replace')).toMatch(/containerConfig[\s\S]*secret/);
    await keys.getByRole('button', { name: 'New loader token…' }).click();
    await page.getByRole('dialog').getByLabel('Days of grace').fill('3');
    await confirmed(page, 'Make it');
    await keys.getByText('Replaced', { exact: true }).waitFor();
  });

  test('keep what was typed when the session ends', async () => {
    await using visited = await visit('owner', 'domains');
    const { page, visitor } = visited;
    await page.getByLabel('New custom domain').fill('metrics.acme.example');
    await stage.world.owner.deleteFrom('sessions').execute();
    await page.getByRole('button', { name: 'Add…' }).click();
    const over = page.getByRole('dialog', { name: 'Your session has ended' });
    const opened = visitor.waitForEvent('page');
    await over.getByRole('link', { name: 'Log in again' }).click();
    await (await opened).waitForEvent('close');
    await over.waitFor({ state: 'hidden' });
    const add = page.getByRole('dialog', { name: 'Add metrics.acme.example?' });
    await add.getByRole('button', { name: 'Add', exact: true }).click();
    await add.waitFor({ state: 'detached' });
    const row = page.locator('#domains .part li').filter({ hasText: 'metrics.acme.example' });
    await row.getByText('Cookies in Safari').waitFor();
    expect(await row.innerText()).toMatch(/DNS[\s\S]*TLS[\s\S]*CNAME/);
    await row.getByRole('button', { name: 'Check now' }).click();
    await eventually(async () =>
      expect(await row.getByRole('button', { name: 'Check now' }).isEnabled()).toBe(true),
    );
  });

  test('offer a viewer nothing to change, and no secret', async () => {
    const { provisioner } = stage.world;
    const known = provisioner.sites.get('acme-shop');
    if (known === undefined) throw new Error('the provisioner has no site');
    const applied = { state: 'applied', hash: 'abc' } as const;
    provisioner.sites.set('acme-shop', {
      ...known,
      ...{ host: 'tag-1', desired: null, applied: null, attempted: null, health: 'healthy' },
      ...{ reason: 'Progressing', message: 'DNS is not applied yet' },
      resources: [
        {
          target: 'dns',
          key: 'CNAME shop',
          state: 'conflict',
          hash: null,
          lastError: 'it has another owner',
        },
        { target: 'containers', key: 'acme-shop-processing', ...applied },
        { target: 'proxy', key: 'acme-shop-origin', ...applied },
        {
          ...{ target: 'certificate', key: 'metrics.acme.example', state: 'live', reason: '', issuer: null },
          ...{ notAfter: '2030-01-01T00:00:00Z', addresses: null, nextCheck: null },
        },
      ],
    });
    await using visited = await visit('viewer', 'domains');
    const { page } = visited;
    await page.locator('#same-origin').getByText('The configuration has a secret token').waitFor();
    await page.getByRole('link', { name: 'Overview', exact: true }).last().click();
    const health = page.locator('#health');
    await health.getByText('DNS is not applied yet').waitFor();
    expect(
      await health.getByRole('listitem').filter({ hasText: 'another owner' }).first().innerText(),
    ).toMatch(/DNS records[\s\S]*Conflict/);
    const order = await health.locator('.tree > li summary .grow').allInnerTexts();
    expect(order.map((text) => text.replace(/ \d.*/, ''))).toEqual([
      'Containers',
      'Proxy vhosts',
      'Certificates',
      'DNS records',
    ]);
    const offered: string[] = [];
    for (const tab of ['Overview', 'Domains', 'Settings', 'History']) {
      const parts = page.getByRole('navigation', { name: 'Parts of the container' });
      await parts.getByRole('link', { name: tab }).click();
      await settled(page);
      offered.push(...(await page.getByRole('main').getByRole('button').allInnerTexts()));
    }
    expect(
      offered.filter((name) => !/^(Copy|Show older commits|Hour|Day|Week|Month|Quarter|‹|›)$/.test(name)),
    ).toEqual([]);
    expect(await page.locator('input[type="file"]').count()).toBe(0);
  });
});
