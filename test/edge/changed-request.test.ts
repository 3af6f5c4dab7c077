import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stage, startStage } from '../../edge/kit/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage({
    plugins: [new URL('../support/edge/worker/changing-plugins.ts', import.meta.url)],
  });
});
afterAll(() => stage.close());

const headers = { 'cf-connecting-ip': '203.0.113.7', 'x-geo-city': 'Paris', 'x-device-bot': 'false' };
const hit = async (flag: string | null) => {
  const site = await stage.site({ features: flag === null ? {} : { [flag]: true } });
  stage.upstream.received.length = 0;
  await stage.seen();
  const answer = await stage.send(site.host, '/g/collect?v=2&secret=1', {
    method: 'POST',
    headers,
    body: 'en=x',
  });
  return { site, answer, arrived: stage.upstream.received[0] };
};

test('the tag server gets the changed request, and what the plugin tells', async () => {
  const { arrived } = await hit('changes');
  expect(new URL(arrived?.url ?? '').search).toBe('?v=2');
  expect(arrived).toMatchObject({ method: 'POST', body: 'en=x' });
  expect(arrived?.headers).toMatchObject({
    'x-changed': 'yes',
    'x-geo-city': 'Berlin',
    'x-forwarded-for': '203.0.113.0',
  });
  expect((await stage.seen()).records[0]?.counters).toEqual({ 'changes.changed': 1 });
});

test('a visitor can’t send what only plugins tell', async () => {
  const { arrived } = await hit(null);
  expect(arrived?.headers).not.toHaveProperty('x-geo-city');
  expect(arrived?.headers).not.toHaveProperty('x-device-bot');
  expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': '203.0.113.7' });
});

test('nothing is passed on if a plugin fails that fails closed; other paths are answered', async () => {
  const { site, answer, arrived } = await hit('closed');
  expect(answer.status).toBe(500);
  expect(arrived).toBeUndefined();
  expect((await stage.boot(site)).status).toBe(200);
});

test('a plugin can’t tell another header: it is skipped', async () => {
  const { arrived } = await hit('liar');
  expect(arrived?.headers).toMatchObject({ 'x-forwarded-for': '203.0.113.7' });
  expect((await stage.seen()).events).toMatchObject([{ event: 'plugin_failed', fields: { plugin: 'liar' } }]);
});
