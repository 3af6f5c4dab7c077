import { readFile } from 'node:fs/promises';
import axeCore from 'axe-core';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { openFullStage } from '../support/console/full-stage.ts';
import { findingsOf, heldOnce, settled } from '../support/console/pages.ts';
import { WATCH } from '../support/console/watch.ts';
import { eventually } from '../support/eventually.ts';
import { batchOf } from '../support/management/raw-logs.ts';
import { TRAFFIC } from '../support/management/world.ts';

const SCRIPT = '<img src=x onerror="window.injected=1">';
const IMAGE = `registry.example/gtm@sha256:${'7'.repeat(64)}`;
const WIDTHS = '[document.documentElement.scrollWidth, document.documentElement.clientWidth]';
const FOCUSED = 'document.activeElement.getAttribute("aria-label")';
const DAY_MS = 86_400_000;
const TRACED = '0b1f7f5e-6f0e-4f0c-9a52-3a3d0c8f2d11';
const QUIET = '1c2a8f6e-7a1f-4a1d-8b63-4b4e1d9a3e22';

describeWith('chromium', 'the console with data', () => {
  let full: Awaited<ReturnType<typeof openFullStage>>;
  let chromium: Visitors;
  let client: string;
  let shop: string;
  let outlet: string;

  /** Today’s requests: 60 of the shop, one of which a visitor has filled with markup, and two of another container. */
  const records = () => {
    const at = (seconds: number) => new Date(Date.now() - seconds * 1_000).toISOString();
    const base = { container: shop, site: 'acme-shop', route: '/g/collect' };
    return [
      { ...base, requestId: 'evil', time: at(5), route: SCRIPT, status: 500, error: SCRIPT, cause: SCRIPT },
      ...Array.from({ length: 59 }, (_, index) => ({
        ...base,
        requestId: [TRACED, QUIET][index] ?? `shop-${index}`,
        time: at(10 + index),
        ...(index % 10 === 0 ? { status: 502, error: 'upstream_failed', cache: null } : {}),
      })),
      { container: outlet, site: 'outlet', requestId: 'outlet-0', time: at(100), route: '/boot' },
      { container: outlet, site: 'outlet', requestId: 'outlet-1', time: at(101), route: '/boot' },
    ];
  };

  beforeAll(async () => {
    const settings = { traffic: { ...TRAFFIC, softLimits: { requests: 50, events: null } } };
    [full, chromium] = await Promise.all([openFullStage(settings), startChromium()]);
    const { stage, bucket } = full;
    client = await stage.world.client('Acme');
    shop = await stage.container(client, 'acme.example');
    outlet = await stage.container(client, 'outlet.example', { name: '=Outlet' });
    const days = Map.groupBy(records(), ({ time }) => time.slice(0, 10));
    for (const own of days.values()) await bucket.put(batchOf(own));
    await eventually(async () => {
      const found = await stage.world.call('GET', '/requests?limit=100', { as: 'owner' });
      expect([found.body.missing, found.body.requests.length]).toEqual([[], 62]);
      const used = await stage.world.call('GET', '/usage', { as: 'owner' });
      const sum = used.body.items.reduce((all: number, one: { requests: number }) => all + one.requests, 0);
      expect(sum).toBe(62);
    });
  }, 120_000);
  afterAll(async () => {
    await chromium?.close();
    await full?.close();
  });

  const rows = (page: Page) => page.locator('.requests tbody tr');
  const put = (page: Page, name: string, value: string) => page.getByLabel(name, { exact: true }).fill(value);

  test.each([1_440, 390])('move nothing at %i px when the rest of a day has been read', async (width) => {
    await using visitor = await chromium.newContext({ viewport: { width, height: 900 } });
    await full.stage.logIn(visitor, 'owner');
    await visitor.addInitScript({ content: WATCH });
    const page = await visitor.newPage();
    const { promise: isDrawn, resolve: drawn } = Promise.withResolvers<void>();
    let reads = 0;
    // The newest records are missing at first, as while the API reads a day.
    await page.route(/\/requests\?/, async (route) => {
      const answer = await route.fetch();
      if (reads++ > 0) {
        await isDrawn;
        await route.fulfill({ response: answer });
        return;
      }
      const json = await answer.json();
      const requests = json.requests.slice(20);
      await route.fulfill({ response: answer, json: { ...json, requests, missing: ['2026-01-01'] } });
    });
    await page.goto(`${full.stage.url}/console/containers/${shop}/requests`);
    await page.getByText('Still reading the records of 2026-01-01').waitFor();
    drawn();
    await page.getByRole('link', { name: 'Export CSV' }).waitFor();
    await settled(page);
    const { shift, shifts } = await page.evaluate<{ shift: number; shifts: unknown[] }>(
      'new Promise((done) => requestAnimationFrame(() => setTimeout(() => done({ ...window.watch }))))',
    );
    expect(shift, JSON.stringify(shifts)).toBeLessThan(0.05);
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('finds requests by each filter, and pages through them', async () => {
    await using visitor = await chromium.newContext();
    const { page, complaints } = await full.stage.logIn(visitor, 'owner', '/console/requests');
    await eventually(async () => expect(await rows(page).count()).toBe(50));
    await page.getByRole('button', { name: 'Next page' }).click();
    await eventually(async () => expect(await rows(page).count()).toBe(12));
    await put(page, 'Status', '5x');
    await put(page, 'Route', '/g/collect');
    await put(page, 'Status', '5xx');
    await eventually(async () => expect(await rows(page).count()).toBe(6));
    // A text that is no whole status yet is not sent as a filter.
    expect(Object.fromEntries(new URL(page.url()).searchParams)).toEqual({
      route: '/g/collect',
      status: '5xx',
    });
    await put(page, 'Status', '');
    await put(page, 'Route', '/boot');
    await eventually(async () => expect(await rows(page).count()).toBe(2));
    await page.goto(`${full.stage.url}/console/requests?error=upstream_failed&cache=hit`);
    await page.getByText('No request matches').waitFor();
    await page.getByRole('button', { name: 'Clear the filters' }).click();
    await eventually(async () => expect(await rows(page).count()).toBe(50));
    await page.getByRole('button', { name: /All containers/ }).click();
    await page.getByRole('combobox', { name: 'Find a container' }).fill('outl');
    await page.getByRole('option', { name: /Outlet/, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await rows(page).count()).toBe(2));
    await page.getByLabel('Time span').selectOption('between');
    const early = new Date(Date.now() - 2 * DAY_MS).toISOString().slice(0, 16);
    await page.getByLabel('From', { exact: true }).fill(early);
    await page
      .getByLabel('To', { exact: true })
      .fill(new Date(Date.now() - DAY_MS).toISOString().slice(0, 16));
    await page.getByText('No request matches').waitFor();
    expect(complaints).toEqual([]);
  });

  test('shows a whole request as text, opened by keyboard, and copies its id', async () => {
    await using visitor = await chromium.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page, complaints } = await full.stage.logIn(visitor, 'owner', '/console');
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Find a container' }).fill('requests');
    await page.getByRole('option', { name: /Requests/, selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await eventually(async () => expect(await rows(page).count()).toBe(50));
    await page.keyboard.press('/');
    expect(await page.evaluate(FOCUSED)).toBe('Request id');
    await page.keyboard.type('evil');
    await eventually(async () => expect(await rows(page).count()).toBe(1));
    await page.getByLabel('Time span').focus();
    await page.getByRole('button', { name: 'Search again' }).focus();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    const detail = page.getByRole('dialog');
    await detail.getByText(SCRIPT).first().waitFor();
    await detail.getByRole('button', { name: 'Copy request id' }).click();
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe('evil');
    await detail.getByText('As JSON').click();
    await detail.getByText('"requestId": "evil"').waitFor();
    expect(await detail.getByRole('link', { name: 'acme-shop' }).getAttribute('href')).toBe(
      `/console/containers/${shop}`,
    );
    await page.keyboard.press('Escape');
    await detail.waitFor({ state: 'hidden' });
    expect(await page.evaluate("'injected' in window")).toBe(false);
    expect(await page.locator('main img').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test.each([
    ['CSV', 12],
    ['NDJSON', 11],
  ])('exports all matching requests as %s', async (format, lines) => {
    await using visitor = await chromium.newContext();
    const path = `/console/containers/${shop}/requests?status=200&requestId=`;
    const { page } = await full.stage.logIn(visitor, 'viewer', path);
    await eventually(async () => expect(await rows(page).count()).toBe(50));
    await put(page, 'Error', 'upstream_failed');
    await page.getByText('No request matches').waitFor();
    await put(page, 'Status', '');
    await eventually(async () => expect(await rows(page).count()).toBe(6));
    const begun = page.waitForEvent('download');
    await page.getByRole('link', { name: `Export ${format}` }).click();
    const text = await readFile(await (await begun).path(), 'utf8');
    expect(text.trim().split('\n').length).toBe(lines - 5);
    expect(text).toContain('shop-10');
    expect(text).not.toContain('shop-11');
  });

  test('follows requests with a bounded number of rows, and stops while it is paused', async () => {
    const { stage } = full;
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'viewer', '/console/requests?view=live');
    await page.getByText('Choose the container to follow').waitFor();
    await page.goto(`${stage.url}/console/containers/${shop}/requests?view=live&status=5xx`);
    await page.getByText('Following').waitFor();
    await stage.report([
      { container: shop, requestId: 'well', route: '/fine' },
      { container: shop, requestId: 'ill', route: SCRIPT, error: SCRIPT, status: 503 },
    ]);
    await eventually(async () => expect(await rows(page).count()).toBe(1));
    await page.getByText(/1 received · the newest arrived \d+(\.\d)? m?s after it was made/).waitFor();
    await put(page, 'Status', '');
    await page.getByText('Waiting for the next request').waitFor();
    await page.getByText('Following').waitFor();
    await stage.report(Array.from({ length: 3_000 }, () => ({ container: shop })));
    await page.getByText(/the newest 100 of 3,000 received/).waitFor();
    expect(await rows(page).count()).toBe(100);
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused', { exact: true }).waitFor();
    await stage.report([{ container: shop, route: '/while-paused' }]);
    await page.getByText('1 new request since the pause').waitFor();
    expect(await page.getByText('/while-paused').count()).toBe(0);
    // An hour later by the browser's clock: the pause doesn't count as time until the arrival.
    await page.evaluate(`{ const now = Date.now; Date.now = () => now() + 3_600_000; }`);
    await page.getByRole('button', { name: 'Resume' }).click();
    await page.getByText('/while-paused').waitFor();
    expect(await page.getByText('the newest arrived').innerText()).toMatch(
      /arrived \d{1,3}(\.\d)? m?s after/,
    );
    expect(await rows(page).count()).toBe(100);
    await page.goto(`${stage.url}/console/containers/${crypto.randomUUID()}/requests?view=live`);
    await page
      .getByRole('alert')
      .getByText(/Request [\w-]+/)
      .waitFor();
    expect(await page.evaluate("'injected' in window")).toBe(false);
    expect(complaints).toEqual([]);
  });

  const tag = (fields: object) =>
    JSON.stringify({ Name: 'Conversions', Type: 'Response', TraceId: TRACED, ...fields });

  test('shows what the tags printed for a request, or that it is nothing or can’t be read', async () => {
    const { stage, printed, print } = full;
    const url = 'https://graph.example/v1/events?token=s3cret';
    await print(
      'acme-shop',
      tag({ Type: 'Request', EventName: 'purchase', RequestMethod: 'POST', RequestUrl: url }),
      tag({ ResponseStatusCode: 400, Message: SCRIPT }),
    );
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'viewer');
    const open = async (id: string) => {
      await page.goto(`${stage.url}/console/requests?requestId=${id}`);
      await page.locator('[data-row]').first().click();
      return page.getByRole('region', { name: 'What the tags said' });
    };
    const said = await open(TRACED);
    await eventually(async () =>
      expect(await said.locator('tbody tr').allInnerTexts()).toEqual([
        expect.stringMatching(/Warning\s+Conversions Response\s+400/),
        expect.stringMatching(
          /Info\s+Conversions Request\s+purchase\s+POST\s+\S*graph\.example\/v1\/events$/,
        ),
      ]),
    );
    const quiet = await open(QUIET);
    await quiet.getByText('The tag server printed nothing for this request').waitFor();
    await quiet.getByText(/kept since \d/).waitFor();
    const { store } = printed;
    printed.store = null;
    try {
      const away = await open(TRACED);
      await away.getByText(/Request [\w-]+/).waitFor();
      printed.store = store;
      await away.getByRole('button', { name: 'Try again' }).click();
      await away.getByText('purchase').waitFor();
    } finally {
      printed.store = store;
    }
    expect(await page.evaluate("'injected' in window")).toBe(false);
    expect(complaints).toEqual([]);
  });

  test('searches the output of the tag servers, and follows it with a bounded number of rows', async () => {
    const { stage, print } = full;
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(
      visitor,
      'viewer',
      `/console/containers/${outlet}/requests`,
    );
    const lines = page.locator('.log-lines tbody tr');
    await page.getByRole('link', { name: 'Output of the tag servers' }).click();
    await page.getByText('Nothing was printed in this time').waitFor();
    await print('outlet', ...Array.from({ length: 60 }, (_, index) => `line ${'o'.repeat(index % 7)}`));
    await print('outlet', tag({ ResponseStatusCode: 503 }));
    await page.getByRole('button', { name: 'Search again' }).click();
    await eventually(async () => expect(await lines.count()).toBe(50));
    await page.getByRole('button', { name: 'Next page' }).click();
    await eventually(async () => expect(await lines.count()).toBe(11));
    await page.getByLabel('Level').selectOption('warning');
    await eventually(async () => expect(await lines.count()).toBe(1));
    expect(await lines.getByRole('link', { name: `Request ${TRACED}` }).getAttribute('href')).toBe(
      `/console/containers/${outlet}/requests?requestId=${TRACED}`,
    );
    await page.getByLabel('Kind').selectOption('text');
    await page.getByText('No line matches').waitFor();
    await page.getByLabel('Level').selectOption('');
    await put(page, 'Text', 'OOOOOO');
    await eventually(async () => expect(await lines.count()).toBe(8));
    await page.getByRole('button', { name: 'Live' }).click();
    await page.getByText('Following').waitFor();
    await print('outlet', 'nothing of it', ...Array.from({ length: 120 }, () => 'oooooo'));
    await page.getByText(/the newest 100 of 120 received/).waitFor();
    expect(await lines.count()).toBe(100);
    expect(complaints).toEqual([]);
  });

  test('shows usage by day and container, and marks days of which nothing is known', async () => {
    await using visitor = await chromium.newContext({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = await full.stage.logIn(visitor, 'viewer', '/console/usage');
    const table = page.locator('table.usage');
    await table.getByText('not known').waitFor();
    await page.getByText('The soft limit of requests was exceeded').waitFor();
    await page.getByText('Days of the time zone UTC').waitFor();
    const known = table.locator('tbody tr', { hasText: '$' });
    await eventually(async () =>
      expect(await known.first().innerText()).toMatch(/Over the soft limit[\s\S]*\$0\.000/),
    );
    expect(await table.locator('tbody tr', { hasText: 'not known' }).innerText()).toMatch(/\d+ days/);
    await page.getByRole('button', { name: 'By container' }).click();
    await eventually(async () =>
      expect(await table.locator('tbody th').allInnerTexts()).toEqual([
        expect.stringContaining('Acme Shop'),
        expect.stringContaining('Outlet'),
      ]),
    );
    // On a narrow screen, too, the price is below its heading.
    await page.setViewportSize({ width: 600, height: 900 });
    const rightOf = async (cell: Locator) => {
      const box = await cell.boundingBox();
      return box === null ? null : Math.round(box.x + box.width);
    };
    const price = table.getByRole('columnheader', { name: 'List price' });
    expect(await rightOf(table.locator('tbody td:last-child').first())).toBe(await rightOf(price));
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.getByRole('button', { name: 'Copy as CSV' }).click();
    const csv = await page.evaluate<string>('navigator.clipboard.readText()');
    // What a spreadsheet would take for a formula is text.
    expect(csv).toContain(",Acme,'=Outlet,2,");
    expect(csv).toMatch(/^day,client,container,requests,[^\n]*\r?\n[\d-]{10},Acme,/);
    await page.getByLabel('Last day').fill('2020-01-31');
    await page.getByLabel('First day').fill('2020-01-01');
    await page.getByRole('button', { name: 'By day' }).click();
    await eventually(async () => expect(await table.locator('tbody tr').count()).toBe(1));
    expect(await table.innerText()).toMatch(/1 Jan 2020 to Fri, 31 Jan 2020[\s\S]*not known/);
  });

  test('plans a rollout, follows it wave by wave, and reverts it', async () => {
    const { stage, daemon } = full;
    await Promise.all(['acme-shop', 'outlet'].map((site) => daemon.reaches(site, 'Ready')));
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'root', '/console/rollouts');
    await page.getByRole('link', { name: 'Plan the first one' }).click();
    await page.getByText('registry.example/gtm').waitFor();
    await put(page, 'Image', `evil.example/gtm@sha256:${'0'.repeat(64)}`);
    await put(page, 'Watch each site (seconds)', '0');
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByText('evil.example/gtm is not among the allowed ones').waitFor();
    await put(page, 'Image', IMAGE);
    await put(page, 'Waves', '1');
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('heading', { name: 'Plan: 2 sites in 2 waves' }).waitFor();
    // Other numbers of sites per wave need a new plan.
    await put(page, 'Waves', '1, 1');
    expect(await page.getByRole('button', { name: 'Start the rollout' }).count()).toBe(0);
    // So does one that is typed before the plan arrives.
    const release = await heldOnce(page, '**/image-rollouts?dryRun=1');
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('button', { name: 'Working…' }).waitFor();
    await put(page, 'Waves', '1');
    release();
    await page.getByRole('button', { name: 'Plan', exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Start the rollout' }).count()).toBe(0);
    await page.getByRole('button', { name: 'Plan', exact: true }).click();
    await page.getByRole('button', { name: 'Start the rollout' }).click();
    await page.getByText('Succeeded').waitFor();
    await page.getByRole('heading', { name: '2 of 2 changed' }).waitFor();
    expect(await page.locator('#events li').allInnerTexts()).toEqual([
      expect.stringMatching(/outlet changed\s+wave 2/),
      expect.stringMatching(/acme-shop changed\s+wave 1/),
    ]);
    await page.getByRole('button', { name: 'Back to the earlier images' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('sites[acme-shop].image').waitFor();
    await dialog.getByRole('button', { name: 'Go back' }).click();
    await page.getByRole('heading', { name: '0 of 2 changed, 2 reverted' }).waitFor();
    await page.goto(`${stage.url}/console/rollouts`);
    await page.getByRole('cell', { name: /0 of 2 changed, 2 reverted/ }).waitFor();
    expect(complaints).toEqual([]);

    await using other = await chromium.newContext();
    const { page: theirs } = await stage.logIn(other, 'owner', '/console/rollouts');
    await theirs.getByText('Your role doesn’t allow this').waitFor();
    expect(await theirs.getByRole('link', { name: 'Rollouts' }).count()).toBe(0);
  });

  test('checks the export of a container for an owner, and shows the result to a viewer', async () => {
    const { stage } = full;
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner', `/console/containers/${shop}`);
    const section = page.locator('#checklist');
    await section.getByText('0 of 6 done').waitFor();
    const upload = (name: string, content: string) =>
      section
        .getByLabel('Check an export')
        .setInputFiles({ name, mimeType: 'application/json', buffer: Buffer.from(content) });
    await upload('broken.json', '{');
    await section.getByText('This is not JSON').waitFor();
    await upload('other.json', '{}');
    await section.getByText(/Request [\w-]+/).waitFor();
    const container = {
      publicId: 'GTM-SRV1234',
      usageContext: ['SERVER'],
      taggingServerUrls: [`https://${SCRIPT}`],
    };
    const version = { container, client: [{ type: 'gaaw_client', name: SCRIPT }] };
    await upload('server.json', JSON.stringify({ exportFormatVersion: 2, containerVersion: version }));
    await section.getByText('server.json was checked').waitFor();
    await section.getByText('1 of 6 done').waitFor();
    await section.getByText('No tagging server URL in Tag Manager leads to this container').waitFor();
    expect(complaints).toEqual([]);

    await using other = await chromium.newContext();
    const { page: theirs } = await stage.logIn(other, 'viewer', `/console/containers/${shop}`);
    await theirs.locator('#checklist').getByText('1 of 6 done').waitFor();
    expect(await theirs.getByLabel('Check an export').count()).toBe(0);
    await theirs.goto(`${stage.url}/console/containers/${shop}/domains`);
    await theirs.getByRole('heading', { name: 'Verification' }).waitFor();
    expect(await theirs.locator('#handover').count()).toBe(0);
  });

  test('makes a link to the DNS records that needs no login, and revokes it', async () => {
    const { stage } = full;
    await using visitor = await chromium.newContext();
    const { page, complaints } = await stage.logIn(visitor, 'owner', `/console/clients/${client}`);
    const section = page.locator('#handover');
    await section.getByText('No mail is sent: this installation has no mail server').waitFor();
    await section.getByRole('button', { name: 'Make a link' }).click();
    const address = section.locator('pre');
    await address.waitFor();
    const url = (await address.innerText()).trim();
    expect(url).toMatch(new RegExp(`^${stage.url}/handover/tgh_`));
    await section.getByText('Waits for DNS').or(section.getByText('Complete')).first().waitFor();
    expect(await (await fetch(url)).text()).toContain('DNS records for Acme');
    await page.goto(`${stage.url}/console/containers/${outlet}/domains`);
    await section.getByText('All containers', { exact: true }).waitFor();
    await section.getByRole('button', { name: 'Make a link' }).click();
    await section.getByText('=Outlet', { exact: true }).waitFor();
    await page.goto(`${stage.url}/console/containers/${shop}/domains`);
    await section.getByText('All containers', { exact: true }).waitFor();
    expect(await section.getByText('=Outlet', { exact: true }).count()).toBe(0);
    await section.getByRole('button', { name: /^Revoke the link/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click();
    await section.getByText('No link is open').waitFor();
    expect((await fetch(url)).status).toBe(404);
    expect(complaints).toEqual([]);
  });

  test.each([
    ['light', { width: 1280, height: 900 }],
    ['dark', { width: 390, height: 844 }],
  ] as const)('satisfies axe while it shows data, %s', async (colorScheme, viewport) => {
    const { stage } = full;
    await using visitor = await chromium.newContext({ colorScheme, viewport });
    await visitor.addInitScript({ content: axeCore.source });
    const { page, complaints } = await stage.logIn(visitor, 'root');
    const { body } = await stage.world.call('GET', '/image-rollouts', { as: 'root' });
    const found: unknown[] = [];
    const judge = async (what: string) => {
      for (const finding of await findingsOf(page)) found.push([what, finding]);
      const [shown, available] = await page.evaluate<number[]>(WIDTHS);
      if (shown !== available) found.push([what, `is ${shown} wide`]);
    };
    for (const path of [
      '/console/requests?status=5xx',
      `/console/containers/${outlet}/output`,
      '/console/usage',
      '/console/rollouts',
      `/console/rollouts/${body.items[0].id}`,
    ]) {
      await page.goto(`${stage.url}${path}`);
      await settled(page);
      await judge(path);
    }
    await page.goto(`${stage.url}/console/requests?requestId=${TRACED}`);
    await page.locator('[data-row]').first().click();
    await page.getByRole('dialog').getByText('purchase').waitFor();
    await judge('the detail of a request');
    expect(found).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
