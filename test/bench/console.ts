import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { sql } from 'kysely';
import type { CDPSession, Page } from 'playwright-core';
import { startChromium, type Visitors } from '../support/browser/chromium.ts';
import { settled } from '../support/console/pages.ts';
import { ConsoleStage } from '../support/console/stage.ts';
import { WATCH } from '../support/console/watch.ts';
import { eventually } from '../support/eventually.ts';
import { PostgresqlFixture } from '../support/management/postgresql.ts';
import { openWorldsOn } from '../support/management/world.ts';
import { type Bench, type Suite, summarise } from './bench.ts';

const CONTAINERS = 10_000;
const TIMES = 9;
const FILTERS = 15;
/**
 * The rate of live requests, and the number of reports a second that carry them: as many as an edge with several
 * isolates sends.
 */
const LIVE = { perSecond: 500, reports: 10, seconds: 6 };

/** The console in Chromium, on PostgreSQL with ten thousand containers. An empty page in the same run is the control. */
export const consoleFigures: Suite = async (bench) => {
  const postgresql = await PostgresqlFixture.start();
  openWorldsOn(() => postgresql.connections());
  const stage = await ConsoleStage.open();
  const chromium = await startChromium();
  const control = await serveEmptyPage();
  try {
    const shop = await stage.container(await stage.world.client('Acme'), 'acme.example');
    await fill(stage, shop);
    const bed = { stage, chromium, shop, control: control.url };
    await firstView(bench, bed);
    await filter(bench, bed);
    await live(bench, bed);
  } finally {
    await chromium.close();
    await stage.close();
    await control.close();
    await postgresql.stop();
  }
};

interface Bed {
  readonly stage: ConsoleStage;
  readonly chromium: Visitors;
  /** The id of a container. */
  readonly shop: string;
  readonly control: string;
}

async function serveEmptyPage() {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end('<!doctype html><html lang="en"><title>Empty</title><main><h1>Empty</h1></main></html>');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, // a TCP server's address
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function fill({ world: { owner } }: ConsoleStage, shop: string): Promise<void> {
  await sql`insert into containers (id, site_id, client_id, status, health, manifest, revision)
    select gen_random_uuid(), 'seed-' || n, client_id, 'active', health,
      jsonb_set(jsonb_set(manifest, '{name}', to_jsonb('Seed ' || n)), '{site}', to_jsonb('seed-' || n)), revision
    from containers, generate_series(1, ${CONTAINERS}::integer) as n where id = ${shop}`.execute(owner);
  await sql`vacuum analyze`.execute(owner);
}

/** A visitor with a session and an empty cache, whose page is watched. */
async function visitorOf({ stage, chromium }: Bed, rate: number) {
  await using first = await chromium.newContext();
  await stage.logIn(first, 'owner');
  const visitor = await chromium.newContext({ storageState: await first.storageState() });
  await visitor.addInitScript({ content: WATCH });
  const page = await visitor.newPage();
  const devtools = await visitor.newCDPSession(page);
  await devtools.send('Emulation.setCPUThrottlingRate', { rate });
  return { visitor, page, devtools };
}

/** Milliseconds from the start of the navigation until the selector's element is painted and the page accepts input. */
async function shownAfter(page: Page, url: string, selector: string): Promise<number> {
  await page.addInitScript({ content: `window.watch.shown(${JSON.stringify(selector)})` });
  await page.goto(url);
  return await page.evaluate('window.watch.isShown');
}

async function firstView(bench: Bench, bed: Bed): Promise<void> {
  const { stage, control } = bed;
  const url = `${stage.url}/console`;
  // Bundles the console, which happens at the first request only.
  await (await fetch(url)).text();
  await bench('first view of the console: octets of all answers', {
    unit: 'KB',
    run: async () => {
      const { visitor, page, devtools } = await visitorOf(bed, 1);
      const octets = await countOctets(devtools);
      await page.goto(url);
      await settled(page);
      await visitor.close();
      return octets() / 1000;
    },
  });
  for (const rate of [1, 4]) {
    const name = rate === 1 ? '' : `, CPU ${rate}× slower`;
    const times: { empty: number; data: number; shift: number }[] = [];
    for (let time = 0; time < TIMES; time += 1) {
      const empty = await withPage(bed, rate, (page) => shownAfter(page, control, 'h1'));
      const [data, shift] = await withPage(bed, rate, async (page) => {
        const after = await shownAfter(page, url, '.stats a, main table tbody a, main li a');
        await settled(page);
        return [after, await page.evaluate<number>('window.watch.shift')] as const;
      });
      times.push({ empty, data, shift });
    }
    await figure(
      bench,
      `data shown and ready for input${name}`,
      'ms',
      times.map(({ data }) => data),
    );
    await figure(
      bench,
      `  an empty page${name}`,
      'ms',
      times.map(({ empty }) => empty),
    );
    const ratios = times.map(({ data, empty }) => data / empty);
    await figure(bench, `  the console against it${name}`, '×', ratios);
    await figure(
      bench,
      `  layout shift (CLS)${name}`,
      '',
      times.map(({ shift }) => shift),
    );
  }
}

async function withPage<T>(bed: Bed, rate: number, work: (page: Page) => Promise<T>): Promise<T> {
  const { visitor, page } = await visitorOf(bed, rate);
  try {
    return await work(page);
  } finally {
    await visitor.close();
  }
}

/** A figure of samples that are already taken, for example alternately with others. */
async function figure(bench: Bench, name: string, unit: string, samples: readonly number[]): Promise<void> {
  const left = [...samples];
  await bench(name, { unit, times: samples.length, run: () => left.shift() ?? Number.NaN });
}

async function countOctets(devtools: CDPSession): Promise<() => number> {
  let octets = 0;
  devtools.on('Network.loadingFinished', ({ encodedDataLength }) => {
    octets += encodedDataLength;
  });
  await devtools.send('Network.enable');
  return () => octets;
}

async function filter(bench: Bench, bed: Bed): Promise<void> {
  const { visitor, page } = await visitorOf(bed, 1);
  await page.goto(`${bed.stage.url}/console/containers`);
  const search = page.getByRole('searchbox');
  const rows = page.locator('tbody tr');
  const times: number[] = [];
  for (let index = 0; index < FILTERS; index += 1) {
    const name = `Seed ${1_234 + index * 567}`;
    await search.fill(name.slice(0, -1));
    await eventually(async () => {
      if (!(await rows.first().innerText()).includes(name.slice(0, -1))) throw new Error('not filtered yet');
    });
    await page.evaluate(`window.watch.rows(${JSON.stringify(name)})`);
    await search.press(name.slice(-1));
    times.push(await page.evaluate<number>('window.watch.areShown'));
  }
  await visitor.close();
  await figure(bench, 'filter of 10,000 containers: from key to shown', 'ms', times);
  const { max } = summarise('', '', times);
  await figure(bench, '  slowest', 'ms', [max]);
}

/** The container's page while its requests are reported, which makes the page read its traffic again. */
async function live(bench: Bench, bed: Bed): Promise<void> {
  const { stage, shop } = bed;
  const { visitor, page } = await visitorOf(bed, 1);
  const opened = page.waitForResponse(/\/requests\/live$/);
  await page.goto(`${stage.url}/console/containers/${shop}`);
  await opened;
  await settled(page);
  await page.evaluate('window.watch.tasks()');
  const before = await page.evaluate<number>("document.querySelectorAll('*').length");
  const records = Array.from({ length: LIVE.perSecond / LIVE.reports }, () => ({ container: shop }));
  const started = performance.now();
  let sent = 0;
  const reports: Promise<void>[] = [];
  while (performance.now() - started < LIVE.seconds * 1000) {
    reports.push(stage.report(records));
    sent += records.length;
    await page.waitForTimeout(Math.max(0, (sent / LIVE.perSecond) * 1000 - (performance.now() - started)));
  }
  await Promise.all(reports);
  const rate = sent / ((performance.now() - started) / 1000);
  await figure(bench, 'a container’s page with live requests: rate', '1/s', [rate]);
  const longest = await page.evaluate<number>('window.watch.longest');
  await figure(bench, '  longest task over 50 ms (0: none)', 'ms', [longest]);
  const after = await page.evaluate<number>("document.querySelectorAll('*').length");
  await figure(bench, '  elements in the page, against before', '×', [after / before]);
  await visitor.close();
}
