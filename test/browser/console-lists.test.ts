import axeCore from 'axe-core';
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storeObjects } from '../../management/traffic/store.ts';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { describeWith } from '../support/components.ts';
import { findingsOf, settled } from '../support/console/pages.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { eventually } from '../support/eventually.ts';
import { batchOf, keyAt, ndjson, recordAt } from '../support/traffic/records.ts';

const LONG = 'Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft';
const NAMES = ['Bremen', 'Hamburg', 'Leipzig', 'Rostock'];

/** Sets `window.redrawn`: whether the first chart differs two frames after the system's colours have changed. */
const REDRAWN = `{
  const picture = () => document.querySelector('#traffic canvas').toDataURL();
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const before = picture();
  window.redrawn = new Promise((done) => {
    const changed = async () => {
      await frame();
      await frame();
      done(picture() !== before);
    };
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed, { once: true });
  });
  undefined; // else the caller would wait for the promise
}`;

describeWith('chromium', 'the console’s lists', () => {
  let stage: ConsoleStage;
  let chromium: Visitors;
  let agency: string;
  let foreign: string;
  const ids = new Map<string, string>();

  beforeAll(async () => {
    [stage, chromium] = await Promise.all([ConsoleStage.open(), startChromium()]);
    const { world } = stage;
    const client = await world.client('Acme');
    for (const name of NAMES) {
      ids.set(name, await stage.container(client, `${name.toLowerCase()}.example`, { name }));
    }
    const post = async (path: string, body: object) =>
      (await world.call('POST', path, { as: 'root', body })).body.id;
    agency = await post('/organisations', {
      name: LONG,
      members: [
        { subject: 'owner', role: 'owner' },
        { subject: 'viewer', role: 'viewer' },
      ],
    });
    foreign = await post('/clients', { name: 'Nordlicht', organisation: agency, members: [] });
  });
  afterAll(async () => {
    await chromium?.close();
    await stage?.close();
  });

  const read = async (name: string) =>
    (await stage.world.call('GET', `/server-containers/${ids.get(name)}`, { as: 'owner' })).body;
  const settledWithoutFindings = async (page: Page) => {
    await settled(page);
    expect(await findingsOf(page)).toEqual([]);
  };
  const visit = async (subject: string, path: string) => {
    const visitor = await chromium.newContext();
    await visitor.addInitScript({ content: axeCore.source });
    const { page, complaints } = await stage.logIn(visitor, subject, path);
    return { page, complaints, [Symbol.asyncDispose]: () => visitor[Symbol.asyncDispose]() };
  };

  test('plan a change of several containers, and show the result for each', async () => {
    await stage.world.call('POST', `/server-containers/${ids.get('Rostock')}/suspend`, {
      as: 'owner',
      body: {},
    });
    await using visited = await visit('owner', '/console/containers?sort=name');
    const { page, complaints } = visited;
    await page.getByLabel('Select Bremen').click();
    await page.getByLabel('Select Rostock').click({ modifiers: ['Shift'] });
    const bar = page.getByRole('region', { name: 'Selected containers' });
    await bar.getByText('4 selected').waitFor();
    await page.getByLabel('Select Leipzig').click();
    await bar.getByText('3 selected').waitFor();
    await bar.getByLabel('Action').selectOption({ label: 'Suspend changes' });
    await bar.getByRole('button', { name: 'Plan…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('2 containers will change, 1 already as wanted.').waitFor();
    expect(await dialog.getByRole('row', { name: /^Bremen/ }).innerText()).toContain(
      'suspended false → true',
    );
    expect((await read('Bremen')).suspended).toBe(false);
    await settledWithoutFindings(page);
    // A change that is no longer possible is refused alone; the others are made.
    await stage.world.call('DELETE', `/server-containers/${ids.get('Hamburg')}`, { as: 'owner' });
    await dialog.getByRole('button', { name: 'Suspend 2' }).click();
    await dialog.getByText('1 container done, 1 refused').waitFor();
    expect(await dialog.getByRole('row', { name: /^Hamburg/ }).innerText()).toContain('wrong_status');
    await settledWithoutFindings(page);
    await dialog.getByRole('button', { name: 'Close' }).click();
    expect([(await read('Bremen')).suspended, (await read('Leipzig')).suspended]).toEqual([true, false]);
    expect(complaints).toEqual([]);
  });

  test('select all containers that match a filter, and ask for their number before a dangerous change', async () => {
    await using visited = await visit('owner', '/console/containers?q=example');
    const { page } = visited;
    await page.route(/\/server-containers\?/, async (route) => {
      const url = new URL(route.request().url());
      // Pages have two rows, so that there is a second page.
      url.searchParams.set('limit', '2');
      await route.continue({ url: url.href });
    });
    await page.reload();
    await page.getByLabel('Select all on this page').waitFor();
    const bar = page.getByRole('region', { name: 'Selected containers' });
    await page.keyboard.press('j');
    await page.keyboard.press('x');
    await bar.getByText('1 selected').waitFor();
    await page.getByLabel('Select all on this page').click();
    await bar.getByText('2 selected').waitFor();
    await bar.getByRole('button', { name: 'Select all that match' }).click();
    await bar.getByText(/^All \d that match selected/).waitFor();
    const text = (await bar.getByRole('status').innerText()).replace(/\D/g, '');
    expect(Number(text)).toBeGreaterThan(2);
    await bar.getByLabel('Action').selectOption({ label: 'Remove' });
    await bar.getByRole('button', { name: 'Plan…' }).click();
    const dialog = page.getByRole('dialog');
    const remove = dialog.getByRole('button', { name: /^Remove \d/ });
    await remove.waitFor();
    expect(await remove.isDisabled()).toBe(true);
    const planned = (await remove.innerText()).replace(/\D/g, '');
    await dialog.getByLabel(`Type ${planned} to confirm`).fill(planned);
    expect(await remove.isEnabled()).toBe(true);
    await page.keyboard.press('Escape');
    expect((await read('Leipzig')).status).toBe('active');
  });

  test('keep filters under a name, for each person, and show them on the overview', async () => {
    await using visited = await visit('owner', '/console/containers?q=leipzig&sort=name');
    const { page, complaints } = visited;
    await page.getByRole('button', { name: 'Save this filter' }).click();
    await page.keyboard.type('Only Leipzig');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'Only Leipzig' }).waitFor();
    await settledWithoutFindings(page);
    await page.goto(`${stage.url}/console`);
    const tile = page.getByRole('list', { name: 'Saved filters' }).getByRole('link');
    await eventually(async () => expect(await tile.innerText()).toMatch(/^1\s+Only Leipzig$/));
    await tile.click();
    await page.getByRole('link', { name: 'Leipzig', exact: true }).waitFor();
    expect(new URL(page.url()).search).toBe('?q=leipzig&sort=name');
    const kept = await page.evaluate<string[]>(
      'Object.keys(localStorage).filter((key) => /owner/.test(key))',
    );
    expect(kept).toEqual(['tagyard-filters owner']);
    await page.getByRole('button', { name: 'Forget the filter Only Leipzig' }).click();
    await page.goto(`${stage.url}/console`);
    await settled(page);
    expect(await page.getByRole('list', { name: 'Saved filters' }).count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('let a viewer select nothing', async () => {
    await using visited = await visit('viewer', '/console/containers');
    const { page } = visited;
    await page.getByRole('link', { name: 'Leipzig' }).waitFor();
    expect(await page.getByRole('checkbox').count()).toBe(0);
    await page.goto(`${stage.url}/console/organisations/${agency}`);
    await page.getByRole('heading', { name: 'Members' }).waitFor();
    await settled(page);
    for (const name of ['Rename', 'Invite', 'Add', 'Remove owner']) {
      expect(await page.getByRole('main').getByRole('button', { name }).count()).toBe(0);
    }
  });

  test('show an organisation, its clients and its people, and change them', async () => {
    await using visited = await visit('owner', '/console/organisations');
    const { page, complaints } = visited;
    await settledWithoutFindings(page);
    await page.getByRole('link', { name: LONG }).click();
    await page.waitForURL(`${stage.url}/console/organisations/${agency}`);
    await page.getByRole('link', { name: 'Nordlicht', exact: true }).waitFor();
    await settledWithoutFindings(page);
    await page.getByLabel('Add a member').fill('anna@nordlicht.example');
    await page.getByLabel('Role', { exact: true }).first().selectOption('editor');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Role of anna@nordlicht.example').waitFor();
    await page.getByRole('button', { name: 'Invite' }).click();
    await page.getByText('Send this token to the person').waitFor();
    const token = await page.locator('.notice.good pre').innerText();
    await using invited = await visit('root', '/console/organisations');
    await invited.page.getByLabel('Accept an invitation').fill(token);
    await invited.page.getByRole('button', { name: 'Accept' }).click();
    await invited.page.getByText('You are a member now, with the role viewer.').waitFor();
    expect(await findingsOf(invited.page)).toEqual([]);
    // Another person renames it meanwhile.
    await page.getByLabel('Name', { exact: true }).fill('Agency of mine');
    await stage.world.call('PATCH', `/organisations/${agency}`, {
      as: 'root',
      body: { name: 'Agency of theirs' },
    });
    await page.getByRole('button', { name: 'Rename' }).click();
    const notice = page.getByRole('alert').filter({ hasText: 'while you edited it' });
    expect(await notice.innerText()).toContain('Agency of theirs');
    await notice.getByRole('button', { name: 'Keep mine, then rename again' }).click();
    await page.getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('heading', { name: 'Agency of mine', level: 1 }).waitFor();
    await page.goto(`${stage.url}/console/clients/${foreign}`);
    await page.getByRole('link', { name: 'Agency of mine' }).waitFor();
    await settledWithoutFindings(page);
    expect(complaints).toEqual([]);
  });

  test('draw traffic with gaps where nothing is known, and show the same as tables', async () => {
    const { world } = stage;
    const container = ids.get('Leipzig');
    const hour = (back: number) =>
      new Date((Math.floor(Date.now() / 3_600_000) - back) * 3_600_000 + 60_000).toISOString();
    const records = [5, 4].flatMap((back) => [
      recordAt(hour(back), { container, duration: 20, consent: 'all', country: 'DE' }),
      recordAt(hour(back), { container, duration: 20, consent: 'none', country: 'AT' }),
      recordAt(hour(back), { container, status: 502, error: 'upstream_failed', country: 'DE', duration: 20 }),
    ]);
    for (const own of Map.groupBy(records, ({ time }) => String(time).slice(0, 10)).values()) {
      const body = Buffer.from(ndjson(batchOf(own)));
      await storeObjects(world.db, [{ key: keyAt(String(own[0]?.time)), size: body.length, body }]);
    }
    await sql`update traffic_state set since = ${hour(5)}::timestamptz - interval '1 minute'`.execute(
      world.db,
    );
    await sql`update traffic_leases set collected_until = now()`.execute(world.db);
    await using visited = await visit('viewer', `/console/containers/${container}/traffic`);
    const { page, complaints } = visited;
    const traffic = page.locator('#traffic');
    await traffic.getByText('6 requests', { exact: true }).waitFor();
    await traffic.getByText('67 % with full consent').waitFor();
    await eventually(async () => expect(await traffic.locator('.uplot canvas').count()).toBe(4));
    const requests = traffic.locator('figure').filter({ hasText: 'Requests per hour by status' });
    await requests.getByText(/gaps: 1[89] of 24 steps/).click();
    const rows = await requests.locator('tbody tr').allInnerTexts();
    expect(rows.filter((row) => /\s2\s+0\s+0\s+1$/.test(row)).length).toBe(2);
    expect(rows.filter((row) => /\s0\s+0\s+0\s+0$/.test(row)).length).toBeGreaterThan(2);
    expect(rows.at(-1)).toMatch(/unknown\s+unknown\s+unknown\s+unknown$/);
    await requests.locator('.u-over').hover();
    await requests.locator('.when').waitFor();
    // The charts follow the system's colours at once, not only when they are drawn for new data.
    await page.evaluate(REDRAWN);
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await page.evaluate('window.redrawn')).toBe(true);
    await page.emulateMedia({ colorScheme: 'light' });
    expect(await traffic.getByRole('row', { name: /Germany/ }).innerText()).toMatch(/4\s+66\.7 %/);
    await settledWithoutFindings(page);
    await traffic.getByRole('button', { name: 'Week' }).click();
    await traffic.getByLabel('Step of the charts').selectOption('day');
    await traffic.getByRole('heading', { name: 'Requests per day by status' }).waitFor();
    expect(new URL(page.url()).search).toBe('?span=week&step=day');
    await traffic.getByRole('button', { name: 'One week earlier' }).click();
    await traffic.getByText('0 requests', { exact: true }).waitFor();
    await page.reload();
    await traffic.getByText(/^in the week until/).waitFor();
    await page.goto(`${stage.url}/console?span=hour`);
    await page.locator('#traffic').getByText('0 requests', { exact: true }).waitFor();
    await settledWithoutFindings(page);
    expect(complaints).toEqual([]);
  });
});
