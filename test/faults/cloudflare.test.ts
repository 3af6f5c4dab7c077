import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Fault, type FaultyCloudflare, startFaultyCloudflare } from '../support/cloudflare/faulty.ts';
import { eventually } from '../support/eventually.ts';
import { ask, standing } from '../support/faults/operations.ts';
import { converged, fullPass, type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';

type When = (method: string, path: string) => boolean;

const any: When = () => true;
const reads: When = (method) => method === 'GET';
const dnsList: When = (method, path) => method === 'GET' && path.endsWith('/dns_records');
const dnsBatch: When = (_method, path) => path.endsWith('/dns_records/batch');
const routeCreate: When = (method, path) => method === 'POST' && path.endsWith('/workers/routes');
const kvWrite: When = (method, path) => method === 'PUT' && path.endsWith('/bulk');

const refusal = (status: number, code: number, message: string): Fault => ({
  kind: 'refuse',
  status,
  body: JSON.stringify({ success: false, errors: [{ code, message }], messages: [], result: null }),
});
/** The pairs were written, but Cloudflare answers that the first of them was not. */
const omission: Fault = {
  kind: 'change',
  change: (body: { result: object }, sent) => {
    const [first] = JSON.parse(sent) as { key: string }[]; // what a bulk call sends
    return { ...body, result: { ...body.result, unsuccessful_keys: [first?.key] } };
  },
};
/**
 * The calls of one observation. A case may take more calls than a creation without faults: the failing ones (it states
 * how many), and those of some retries, each of which begins with an observation.
 */
const OBSERVATION = 6;

describe('a daemon whose Cloudflare fails', () => {
  let on: Stage;
  let faulty: FaultyCloudflare;
  let daemon: RunningDaemon;
  let untroubled = 0;
  let number = 0;

  beforeAll(async () => {
    on = await stage({ mode: 'site' });
    faulty = await startFaultyCloudflare(on.gate.cloudflareUrl);
    const settings = on.settings().cloudflare;
    daemon = await on.start({
      cloudflare: { ...settings, url: faulty.url, timeoutMs: 1000, pauseSeconds: 2 },
    });
    await eventually(async () => expect((await daemon.figures()).passes).toBeGreaterThan(0));
    untroubled = await callsOf(() => create('untroubled'));
  });
  afterAll(async () => {
    await daemon?.kill();
    await faulty?.close();
    await on?.close();
  });
  beforeEach(() => {
    faulty.heal();
    faulty.faulted.length = 0;
    faulty.calls.length = 0;
  });

  async function callsOf(work: () => Promise<unknown>): Promise<number> {
    const before = faulty.calls.length;
    await work();
    return faulty.calls.length - before;
  }
  async function create(site: string): Promise<void> {
    number += 1;
    const body = on.manifest(site, number);
    expect(await ask(daemon, [{ method: 'POST', path: '/provision', body }])).toEqual([]);
    await settled();
  }
  /** Unlike `POST /plan`, this causes no call of Cloudflare's API. */
  async function settled(): Promise<void> {
    const head = await on.repo.head();
    await eventually(
      async () => {
        const { sites } = await daemon.sites();
        const off = sites
          .filter(({ ready }) => !ready)
          .map(({ site, reason, message }) => [site, reason, message]);
        expect(off).toEqual([]);
        expect(sites.map(({ applied }) => applied)).toContain(head);
      },
      { timeoutMs: 60_000, until: () => daemon.exited() },
    );
  }
  const whole = { containers: 2, proxy: 1, kv: 4, routes: 1, dns: 3 };

  test.each<[string, Fault, When, number]>([
    [
      '429 with retry-after to any call',
      { kind: 'refuse', status: 429, headers: { 'retry-after': '3' } },
      any,
      1,
    ],
    ['429 without retry-after to any call', { kind: 'refuse', status: 429 }, any, 1],
    ['429 in the middle', { kind: 'refuse', status: 429, headers: { 'retry-after': '3' } }, dnsBatch, 1],
    ['500 after the records were written', { kind: 'fail after' }, dnsBatch, 1],
    ['500 after the route was made', { kind: 'fail after' }, routeCreate, 1],
    ['500 after the documents were written', { kind: 'fail after' }, kvWrite, 2],
    ['503 with an HTML error page to any call', { kind: 'refuse', status: 503, body: '<html>' }, any, 8],
    ['no answer to a read', { kind: 'hang' }, reads, 1],
    ['no answer to a write', { kind: 'hang' }, dnsBatch, 1],
    ['a connection cut before an answer', { kind: 'drop' }, routeCreate, 1],
    ['half a JSON to a read', { kind: 'truncate' }, reads, 2],
    ['half a JSON to a write that was carried out', { kind: 'truncate' }, dnsBatch, 1],
    [
      'a page that lacks a record',
      {
        kind: 'change',
        change: (body: { result: unknown[] }) => ({ ...body, result: body.result.slice(1) }),
      },
      dnsList,
      2,
    ],
    [
      '“exists already” to a create that was never made',
      refusal(400, 81058, 'An identical record exists'),
      dnsBatch,
      1,
    ],
    [
      '“exists already” to a route that was never made',
      refusal(409, 10020, 'duplicate_route'),
      routeCreate,
      1,
    ],
    ['a bulk that seems to lack a key', omission, kvWrite, 4],
    ['a full quota', refusal(400, 81045, 'Record quota exceeded'), dnsBatch, 2],
    ['a token that is revoked in the middle', refusal(403, 9109, 'Unauthorized'), any, 3 * OBSERVATION],
  ])('%s: keeps running, creates nothing twice, and converges', async (name, fault, when, times) => {
    const site = `case-${number + 1}`;
    // In the middle: a part of the site already exists.
    if (name.includes('middle')) faulty.plan(fault, afterThe(kvWrite, when), times);
    else faulty.plan(fault, when, times);
    const calls = await callsOf(() => create(site));

    expect(faulty.faulted.length).toBe(times);
    expect(daemon.exited()).toBe(false);
    expect(standing(on.snapshot(), site)).toEqual(whole);
    if (hasUnknownOutcome(fault)) expect(blindCreates(faulty)).toEqual([]);
    if (fault === omission) expect(kvWrites(faulty)).toBeGreaterThan(whole.kv);
    console.log(`${name}: ${calls} calls (${untroubled} without faults)`);
    expect(calls).toBeLessThanOrEqual(untroubled + times + 5 * OBSERVATION);
    await converged(daemon);
    await on.expectDelivered();
  });

  test('finds its own records despite a stale list, and creates nothing twice', async () => {
    const site = `case-${number + 1}`;
    await create(site);
    faulty.plan(
      {
        kind: 'change',
        change: (body: { result: { name: string }[]; result_info: object }) => {
          const result = body.result.filter((record) => !record.name.startsWith(site));
          const count = result.length;
          return { ...body, result, result_info: { ...body.result_info, count, total_count: count } };
        },
      },
      dnsList,
    );
    await fullPass(daemon);
    expect(faulty.faulted).toHaveLength(1);
    await settled();
    expect(standing(on.snapshot(), site)).toEqual(whole);
    await converged(daemon);
  });

  test('removes everything once although the answers to a removal are lost', async () => {
    const site = `case-${number + 1}`;
    await create(site);
    faulty.plan({ kind: 'fail after' }, (method) => method !== 'GET', 4);
    expect(await ask(daemon, [{ method: 'POST', path: '/deprovision', body: { site } }])).toEqual([]);
    await converged(daemon);
    expect(standing(on.snapshot(), site)).toEqual({ containers: 0, proxy: 0, kv: 0, routes: 0, dns: 0 });
    await on.expectDelivered();
  });
});

describe('a daemon whose Cloudflare allows few calls', () => {
  let on: Stage;
  let daemon: RunningDaemon;
  beforeAll(async () => {
    // The limit is so low that even a busy machine makes that many calls in that time.
    on = await stage({ mode: 'site', limits: { calls: { calls: 30, seconds: 5 } } });
    daemon = await on.start();
  });
  afterAll(async () => {
    await daemon?.kill();
    await on?.close();
  });

  test('waits as long as the refusal says, and brings up every site', async () => {
    const sites = ['acme', 'beta', 'core', 'dune', 'echo', 'fuji'];
    for (const [number, site] of sites.entries()) {
      const body = on.manifest(site, number);
      expect(await ask(daemon, [{ method: 'POST', path: '/provision', body }])).toEqual([]);
    }
    await eventually(
      async () => {
        const { sites: shown } = await daemon.sites();
        expect(shown.map(({ site, ready, message }) => [site, ready, ready || message])).toEqual(
          sites.map((site) => [site, true, true]),
        );
      },
      { timeoutMs: 60_000, until: () => daemon.exited() },
    );
    const whole = { containers: 2, proxy: 1, kv: 4, routes: 1, dns: 3 };
    for (const site of sites) expect(standing(on.snapshot(), site)).toEqual(whole);
    expect(on.emulator.throttled()).toBeGreaterThan(0);
    // A daemon that continued to call would be refused again and again.
    expect(on.emulator.throttled()).toBeLessThan(30);
  });
});

/** Selects nothing until `first` has selected something, then what `when` selects. */
function afterThe(first: When, when: When): When {
  let begun = false;
  return (method, path) => {
    const picked = begun && when(method, path);
    begun ||= first(method, path);
    return picked;
  };
}

/** Bulk writes of pairs; without faults, a new site needs one for each of its pairs, which are in different namespaces. */
function kvWrites({ calls }: FaultyCloudflare): number {
  return calls.filter((call) => kvWrite(...(call.split(' ') as [string, string]))).length; // method and path
}

/** Whether something may have been written: not after a refusal with a status below 500. */
function hasUnknownOutcome(fault: Fault): boolean {
  return fault.kind !== 'refuse' || fault.status >= 500;
}

/** Creates (of records and routes) that repeat one with an unknown outcome, without an observation in between. */
function blindCreates({ calls, faulted }: FaultyCloudflare): string[] {
  return faulted.flatMap((place) => {
    const [method = '', path = ''] = calls[place]?.split(' ') ?? [];
    if (!dnsBatch(method, path) && !routeCreate(method, path)) return [];
    const later = calls.slice(place + 1);
    const again = later.indexOf(`${method} ${path}`);
    const list = `GET ${path.replace(/\/batch$/, '')}`;
    return again !== -1 && !later.slice(0, again).includes(list) ? [`${method} ${path}`] : [];
  });
}
