import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';
import { vendorScript } from '../support/edge/upstream.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
  stage.upstream.reply = ({ url }) => (url.includes('vendor.test') ? vendorScript() : { status: 204 });
});
afterAll(() => stage.close());

let site: StagedSite;
let requests: Record<string, () => Promise<{ status: number }>>;
beforeEach(async () => {
  site = await stage.site({ features: { cookie_restoration: true } });
  const fpid = '0123456789abcdef'.repeat(2);
  requests = {
    '/l/': () => stage.send(site.host, `/l/${site.loader}.js`),
    '/c/': () => stage.send(site.host, `/c/${site.domains[0]?.token}.js`),
    '/boot': () => stage.boot(site, { fpid }),
    '/g/collect': () => stage.send(site.host, '/g/collect?v=2', { method: 'POST', body: 'en=scroll' }),
  };
  for (const request of Object.values(requests)) await request();
  await stage.seen();
});

const NAMESPACES = ['ROUTES', 'SITE_REGISTRY', 'LOADER_TOKEN_MAP', 'EDGE_CONFIG', 'COOKIES'] as const;
afterEach(async () => {
  for (const namespace of NAMESPACES) await stage.fault(namespace, null);
  await stage.seen();
});

describe('store operations of a warm request', () => {
  test.each([
    ['/l/', { reads: 0, writes: 0, matches: 0 }],
    ['/c/', { reads: 0, writes: 0, matches: 0 }],
    ['/boot', { reads: 1, writes: 0, matches: 0 }],
    ['/g/collect', { reads: 0, writes: 0, matches: 0 }],
  ])('%s: %j', async (path, touched) => {
    await requests[path]?.();
    const { reads, writes, cacheMatches } = await stage.seen();
    expect({ reads: reads.length, writes: writes.length, matches: cacheMatches.length }).toEqual(touched);
  });

  test('/c/ in another isolate of the data centre reads no KV and matches the cached script once', async () => {
    await stage.restart();
    await requests['/c/']?.();
    const { reads, cacheMatches } = await stage.seen();
    expect(reads).toEqual([]);
    expect(cacheMatches.filter((url) => url.includes('/vendor/'))).toHaveLength(1);
  });
});

test('known sites are still served if every second call to KV fails', async () => {
  for (const namespace of NAMESPACES) await stage.fault(namespace, 'alternate');
  const statuses: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    // In most rounds the documents are stale and are read again; in some rounds, so is the vendor's script.
    await stage.forward(45_000);
    // In some rounds, start a new isolate, which has only the data centre's copies.
    if (round % 7 === 6) await stage.restart();
    const all = Object.values(requests).flatMap((request) => Array.from({ length: 5 }, request));
    for (const { status } of await Promise.all(all)) statuses.push(status);
  }
  expect(statuses).toHaveLength(400);
  expect(statuses.filter((status) => status >= 400)).toEqual([]);
  const { events } = await stage.seen();
  expect(events.filter(({ event }) => event === 'store_failed').length).toBeGreaterThan(20);
});
