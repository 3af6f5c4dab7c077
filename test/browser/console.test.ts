import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';
import { CONFIG } from '../support/management/world.ts';

const isFocused = (element: unknown) =>
  (globalThis as unknown as { document: { activeElement: unknown } }).document.activeElement === element;

const HISTORY_TOP = "document.querySelector('#history').getBoundingClientRect().top";

describeWith('chromium', 'the console', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let client: string;
  let shop: string;

  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
    client = await stage.world.client('Acme');
    shop = await stage.container(client, 'acme.example');
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  const read = async (id = shop) =>
    (await stage.world.call('GET', `/server-containers/${id}`, { as: 'owner' })).body;
  const rename = (name: string) =>
    stage.world.call('PATCH', `/server-containers/${shop}`, { as: 'admin', body: { name } });

  test('logs in with one click, and shows the way from the overview to a container', async () => {
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner');
    expect(new URL(page.url()).pathname).toBe('/console');
    await page.getByRole('link', { name: 'Acme Shop' }).waitFor();
    await page.getByRole('link', { name: 'Containers', exact: true }).click();
    await page.getByRole('link', { name: 'Acme Shop' }).click();
    await page.waitForURL(`${stage.url}/console/containers/${shop}`);
    for (const name of ['Traffic', 'Snippet', 'Health']) {
      await page.getByRole('heading', { name, exact: true }).waitFor();
    }
    await page.getByText(/^Serving 1 domain/).waitFor();
    const parts = page.getByRole('navigation', { name: 'Parts of the container' });
    expect(await parts.getByRole('link').allInnerTexts()).toEqual([
      ...['Overview', 'Domains', 'Traffic', 'Requests', 'Settings', 'History'],
    ]);
    await parts.getByRole('link', { name: 'Requests' }).click();
    await page.waitForURL(`${stage.url}/console/containers/${shop}/requests`);
    await parts.getByRole('link', { name: 'History' }).click();
    await page.waitForURL(`${stage.url}/console/containers/${shop}/history`);
    await page.getByText('Create acme-shop').waitFor();
    await parts.getByRole('link', { name: 'Overview' }).click();
    await page
      .locator('#traffic')
      .getByText(/^\d+ requests$/)
      .waitFor();
    expect(complaints).toEqual([]);
  });

  test('offers the accounts in the configured order, and another account after a logout', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner');
    await page.request.post(`${stage.url}/session/logout`, { headers: { 'sec-fetch-site': 'same-origin' } });
    await page.goto(`${stage.url}/console`);
    const accounts = page.getByRole('main').getByRole('button');
    await accounts.first().waitFor();
    expect(await accounts.allInnerTexts()).toEqual([
      expect.stringContaining('The owner'),
      expect.stringContaining('The viewer'),
      expect.stringContaining('The root'),
    ]);
    await page.getByRole('button', { name: 'The viewer' }).click();
    await page.getByText('The viewer').waitFor();
    expect(new URL(page.url()).pathname).toBe('/console');
  });

  test('creates a container, shows its steps and snippet, and verifies it', async () => {
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner', '/console/containers/new');
    stage.world.provisioner.auto = false;
    await page.getByLabel('Container configuration').fill(CONFIG);
    expect(await page.getByLabel('Decoded configuration').innerText()).toMatch(/GTM-SRV12345[\s\S]*••••/);
    expect(await page.locator('main').innerText()).not.toContain('auth-t0ken');
    await page.getByLabel('Name', { exact: true }).fill('Bremen Shop');
    await page.getByLabel('Domain', { exact: true }).fill('bremen.example');
    await page.getByLabel('Web tag id', { exact: true }).fill('GTM-ABC1234');
    await page.getByText('bremen-shop.edge.example.net').waitFor();
    await page.getByLabel('Only after a grant').check();
    await page.getByRole('button', { name: 'Create the container' }).click();
    await page.waitForURL(/\/setup$/);
    const steps = page.getByRole('list', { name: 'Steps' });
    await steps.getByText('Running').waitFor();
    stage.world.provisioner.auto = true;
    const { body } = await stage.world.call('GET', '/server-containers?q=bremen', { as: 'owner' });
    stage.world.provisioner.sites.set('bremen-shop', { reason: 'Ready', message: '' });
    stage.world.provisioner.finish('bremen-shop', 'succeeded');
    await page.getByRole('button', { name: 'Verify now' }).click();
    await eventually(async () => expect((await read(body.containers[0].id)).status).toBe('verified'));
    await page.getByText('Infrastructure checked', { exact: true }).first().waitFor();
    // After the creation, the steps are one line.
    await page.getByText(/^\d+ steps? done$/).click();
    expect(await steps.getByText('Succeeded').count()).toBeGreaterThan(0);
    expect(await page.locator('#snippet pre').first().innerText()).toContain('<script>');
    expect(complaints).toEqual([]);
  });

  test('says at the fields of a creation what is wrong, asks for consent, and takes another host name', async () => {
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner', '/console/containers/new');
    const button = page.getByRole('button', { name: 'Create the container' });
    const described = async (label: string) => {
      const field = page.getByLabel(label, { exact: true });
      await page.locator('[aria-invalid="true"]').first().waitFor();
      const id = (await field.getAttribute('aria-describedby'))?.split(' ').at(-1);
      return await page.locator(`[id="${id}"]`).innerText();
    };
    await page.getByLabel('Container configuration').fill(CONFIG);
    await page.getByLabel('Name', { exact: true }).fill('Möbel Groß');
    await page.getByLabel('Domain', { exact: true }).fill('möbel');
    await page.getByLabel('Web tag id', { exact: true }).fill('GTM-ABC1234');
    expect(await described('Domain')).toContain('must be a lower-case host name');
    await page.getByLabel('Domain', { exact: true }).fill(' https://www.möbel-groß.example/shop');
    await page.getByLabel('Web tag id', { exact: true }).fill('G-ABC1234567');
    await page.getByText('is the measurement id of GA4').waitFor();
    expect(await described('Web tag id')).toContain('is the measurement id of GA4');
    await page.getByLabel('Web tag id', { exact: true }).fill(' gtm-abc1234');
    await page.getByText('moebel-gross.edge.example.net').waitFor();
    const choices = page.getByRole('radio');
    expect(await choices.evaluateAll((all) => all.map((one) => one.matches(':checked')))).toEqual([
      false,
      false,
    ]);
    expect(await button.isDisabled()).toBe(true);
    await page.getByLabel('Only after a grant').check();
    await page.getByLabel('Host name', { exact: true }).fill('login');
    expect(await described('Host name')).toContain('is reserved');
    await page.getByLabel('Host name', { exact: true }).fill('mg');
    await page.getByText('mg.edge.example.net').waitFor();
    await page.getByText('Advanced', { exact: true }).click();
    await page.getByLabel('Certificates', { exact: true }).selectOption('Ordered automatically (ACME)');
    await button.click();
    await page.waitForURL(/\/setup$/);
    const q = encodeURIComponent('möbel');
    const { body } = await stage.world.call('GET', `/server-containers?q=${q}`, { as: 'owner' });
    expect(body.containers).toMatchObject([
      {
        ...{ siteId: 'mg', consent: 'required', consentMode: 'basic', tls: 'acme' },
        domains: [{ domain: 'www.xn--mbel-gro-xya6t.example', webTagId: 'GTM-ABC1234' }],
      },
    ]);
    await page.goto(`${stage.url}/console/containers?q=${q}`);
    await page.getByText('www.möbel-groß.example').first().waitFor();
    expect(complaints.filter((one) => !one.includes('400'))).toEqual([]);
  });

  test('shows another person’s change before it saves, and overwrites none of it', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', `/console/containers/${shop}/settings`);
    const form = page.getByRole('form', { name: 'Settings' });
    await form.getByLabel('Days that a consent lasts').fill('100');
    await form.getByLabel('Certificates').selectOption('Ordered automatically (ACME)');
    expect((await rename('Acme of the admin')).status).toBe(200);
    await form.getByRole('button', { name: 'Review changes' }).click();
    const notice = page.locator('#settings').getByRole('alert');
    await notice.getByText('changed this container while you edited it').waitFor();
    expect(await notice.innerText()).toMatch(/name[\s\S]*Acme Shop[\s\S]*Acme of the admin/);
    await notice.getByRole('button', { name: 'Put mine on top of theirs' }).click();
    expect(await form.getByLabel('Days that a consent lasts').inputValue()).toBe('100');
    expect(await form.getByLabel('Name', { exact: true }).inputValue()).toBe('Acme of the admin');
    await form.getByRole('button', { name: 'Review changes' }).click();
    await page.getByRole('heading', { name: 'What this changes' }).waitFor();
    await form.getByRole('button', { name: 'Save' }).click();
    await eventually(async () =>
      expect(await read()).toMatchObject({ name: 'Acme of the admin', consentMaxDays: 100, tls: 'acme' }),
    );
  });

  test('keeps a value that the person changes while earlier changes are saved', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', `/console/containers/${shop}/settings`);
    const form = page.getByRole('form', { name: 'Settings' });
    await form.getByLabel('Days that a consent lasts').fill('90');
    await form.getByRole('button', { name: 'Review changes' }).click();
    const [sent, answered] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    await page.route(`**/server-containers/${shop}`, async (route) => {
      if (route.request().method() === 'PATCH') {
        sent.resolve();
        await answered.promise;
      }
      await route.continue();
    });
    await form.getByRole('button', { name: 'Save' }).click();
    await sent.promise;
    await form.getByLabel('Name', { exact: true }).fill('Acme of the owner');
    answered.resolve();
    await eventually(async () => expect(await read()).toMatchObject({ consentMaxDays: 90 }));
    await form.locator('button:enabled', { hasText: 'Review changes' }).waitFor();
    expect(await form.getByLabel('Name', { exact: true }).inputValue()).toBe('Acme of the owner');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('shows the saved settings also while the container can’t be read again', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', `/console/containers/${shop}/settings`);
    const form = page.getByRole('form', { name: 'Settings' });
    await form.getByLabel('Days that a consent lasts').fill('80');
    await form.getByRole('button', { name: 'Review changes' }).click();
    await form.getByRole('button', { name: 'Save' }).waitFor();
    await page.route(`**/server-containers/${shop}`, (route) =>
      route.request().method() === 'GET' ? route.abort() : route.continue(),
    );
    await form.getByRole('button', { name: 'Save' }).click();
    await form.locator('button:disabled', { hasText: 'Review changes' }).waitFor();
    expect(await form.getByLabel('Days that a consent lasts').inputValue()).toBe('80');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    expect(await read()).toMatchObject({ consentMaxDays: 80 });
  });

  test('reverts a change from the history', async () => {
    await rename('Acme by mistake');
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner', `/console/containers/${shop}#history`);
    const entry = page.locator('#history li').first();
    await entry.waitFor();
    await eventually(async () => expect(await page.evaluate<number>(HISTORY_TOP)).toBeLessThan(500));
    await entry.locator('summary').click();
    const revert = entry.getByRole('button', { name: 'Revert this' });
    await revert.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await eventually(async () => expect(await revert.evaluate(isFocused)).toBe(true));
    await revert.click();
    await dialog.getByText('Acme by mistake').waitFor();
    await dialog.getByRole('button', { name: 'Revert', exact: true }).click();
    await eventually(async () => expect((await read()).name).toBe('Acme of the admin'));
  });

  test('lets a viewer read a container, and offers no change', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'viewer', `/console/containers/${shop}/history`);
    await page.getByText('Create acme-shop').waitFor();
    expect(await page.getByRole('button', { name: 'Revert this' }).count()).toBe(0);
    await page.getByRole('link', { name: 'Domains', exact: true }).click();
    await page.getByRole('heading', { name: 'Verification' }).waitFor();
    for (const name of ['Verify now', 'Add a domain']) {
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    }
    await page.getByRole('link', { name: 'Settings', exact: true }).click();
    await page.getByText('Your role may read the settings').waitFor();
    for (const name of ['Review changes', 'Remove…']) {
      expect(await page.getByRole('button', { name }).count()).toBe(0);
    }
    expect(await page.getByLabel('Days that a consent lasts').isDisabled()).toBe(true);
    await page.goto(`${stage.url}/console/containers/new`);
    await page.getByText('You can’t create containers').waitFor();
    await page.goto(`${stage.url}/console/hosts`);
    await page.getByText('Your role doesn’t allow this').waitFor();
  });

  test('can be used by keyboard alone', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner');
    await page.getByRole('link', { name: 'Acme of the admin' }).waitFor();
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find a container or a screen' }).waitFor();
    await page.keyboard.type('acme of');
    await page.getByRole('option', { name: /Acme of the admin/, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${stage.url}/console/containers/${shop}`);
    await page.goto(`${stage.url}/console/containers`);
    await page.getByRole('link', { name: 'Acme of the admin' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('bremen');
    await eventually(async () => {
      expect(await page.locator('tbody tr').count()).toBe(1);
      expect(new URL(page.url()).search).toBe('?q=bremen');
    });
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).getByText('next row').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    expect(new URL(page.url()).search).toBe('?q=bremen');
    for (const name of ['Name', 'State', 'Last visit']) {
      while (!(await page.getByRole('button', { name, exact: true }).evaluate(isFocused))) {
        await page.keyboard.press('Tab');
      }
    }
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/console\/containers\/[0-9a-f-]{36}$/);
    await page.getByRole('heading', { name: 'Bremen Shop', level: 1 }).waitFor();
  });

  test('waits for slow answers, opens a refused stream again, and says what can’t be loaded', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner');
    // Only the first read of the traffic is answered, and late: if the console sent others instead of waiting,
    // they would get no answer.
    const slow = Promise.withResolvers<void>();
    const traffic = new RegExp(`${shop}/traffic\\?`);
    await page.route(traffic, () => {});
    await page.route(traffic, (route) => slow.promise.then(() => route.continue()), { times: 1 });
    await page.route('**/events', (route) => route.fulfill({ status: 503 }), { times: 1 });
    await page.route('**/assets/audit-*', (route) => route.abort());
    await page.goto(`${stage.url}/console/containers/${shop}`);
    await page.getByText('Connecting').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    slow.resolve();
    await page
      .locator('#traffic')
      .getByText(/^\d+ requests$/)
      .waitFor();
    await page.getByRole('link', { name: 'Audit' }).click();
    await page.getByRole('button', { name: 'Load the console again' }).waitFor();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('reads a container’s traffic when a request is reported', async () => {
    await using visitor = await chromium.newContext();
    await visitor.addInitScript({ content: 'window.setInterval = () => 0' });
    const { page } = await stage.logIn(visitor, 'owner');
    const opened = page.waitForResponse(/\/requests\/live$/);
    await page.goto(`${stage.url}/console/containers/${shop}`);
    await opened;
    await page.getByText('Live', { exact: true }).waitFor();
    const read = page.waitForRequest(/\/traffic\?/);
    await stage.report([{ container: shop, requestId: 'a' }]);
    await read;
  });

  test('shows what is unknown while the provisioner can’t be reached', async () => {
    await using visitor = await chromium.newContext();
    const { page } = await stage.logIn(visitor, 'owner');
    await stage.world.provisioner.stop();
    await page.goto(`${stage.url}/console/containers/${shop}`);
    await page.getByRole('heading', { name: 'Snippet' }).waitFor();
    await page.locator('#health').getByRole('alert').waitFor();
    expect(await page.locator('#health').getByRole('alert').innerText()).toMatch(/Request [\w-]+/);
  });
});
