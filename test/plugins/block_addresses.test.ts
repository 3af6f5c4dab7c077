import { BlockList, isIPv4 } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { rangeMatcher } from '../../plugins/block_addresses/ranges.ts';
import { MODULES } from '../../plugins/document.ts';
import { HOP_SECRET, type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const features = { block_addresses: true };
const modules = { block_addresses: { ranges: ['203.0.113.0/25', '2001:db8::/32', '198.51.100.9'] } };

async function ask(path: string, headers: Record<string, string>, method = 'GET') {
  const { host } = await stage.site({ features, modules });
  stage.upstream.received.length = 0;
  const { status } = await stage.send(host, path, { method, headers });
  return [status, stage.upstream.received.length];
}

test.each([
  ['203.0.113.7', true],
  ['203.0.113.127', true],
  ['203.0.113.128', false],
  ['::ffff:203.0.113.7', true],
  ['2001:db8:ffff::1', true],
  ['2001:db9::1', false],
  ['198.51.100.9', true],
])('a hit of %s is refused: %s', async (address, isRefused) => {
  const answer = await ask('/g/collect?v=2', { 'cf-connecting-ip': address });
  expect(answer).toEqual(isRefused ? [204, 0] : [200, 1]);
});

test('a bootstrap is refused and counted, a script is served', async () => {
  const site = await stage.site({ features, modules });
  const headers = { 'cf-connecting-ip': '203.0.113.7' };
  await stage.seen();
  expect((await stage.boot(site, {}, headers)).status).toBe(204);
  expect((await stage.seen()).records[0]?.counters).toEqual({ 'block_addresses.refused': 1 });
  expect((await stage.boot(site, {}, { 'cf-connecting-ip': '192.0.2.1' })).status).toBe(200);
  expect(await ask('/gtm.js?id=GTM-X', headers)).toEqual([200, 1]);
});

test('the visitor’s address counts, not that of our proxy or what the visitor states', async () => {
  const behind = { 'x-tagyard-hop-secret': HOP_SECRET, 'cf-connecting-ip': '203.0.113.7' };
  expect(await ask('/g/collect', { ...behind, 'x-forwarded-for': '192.0.2.1' })).toEqual([200, 1]);
  expect(await ask('/g/collect', { ...behind, 'x-forwarded-for': '203.0.113.9' })).toEqual([204, 0]);
  const stated = { 'cf-connecting-ip': '192.0.2.1', 'x-forwarded-for': '203.0.113.7' };
  expect(await ask('/g/collect', stated)).toEqual([200, 1]);
});

const RANGES = ['10.0.0.0/8', '172.16.0.0/12', '192.168.1.1/32', '0.0.0.0/1', '203.0.113.77/30'].concat([
  'fe80::/10',
  '2001:db8:8000::/33',
  '::1/128',
  '2001:db8::/127',
  'fc00::/7',
]);
const ADDRESSES = ['10.255.0.1', '11.0.0.1', '172.31.255.255', '172.32.0.0', '192.168.1.1', '128.0.0.0']
  .concat(['203.0.113.76', '203.0.113.79', '203.0.113.80', 'fe80::1', 'febf::1', 'fec0::1', '::1', '::2'])
  .concat(['2001:db8:7fff::', '2001:db8:8000::', '2001:db8::1', '2001:db8::2', 'fdff::1', 'fe00::1']);

test.each(RANGES)('Node’s own list agrees on %s', (range) => {
  const [address = '', length] = range.split('/');
  const list = new BlockList();
  list.addSubnet(address, Number(length), isIPv4(address) ? 'ipv4' : 'ipv6');
  const matches = rangeMatcher([range]);
  for (const each of ADDRESSES) {
    expect([each, matches(each)]).toEqual([each, list.check(each, isIPv4(each) ? 'ipv4' : 'ipv6')]);
  }
});

test.each(['10.0.0.0/33', '::/129', 'example.net', '10.0.0', '1.2.3.4/', ''])(
  'refuses the range %s',
  (range) => {
    expect(MODULES.block_addresses.safeParse({ ranges: [range] }).success).toBe(false);
  },
);
