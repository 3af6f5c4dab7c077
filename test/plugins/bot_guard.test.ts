import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

const GOOGLEBOT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';
const BROWSER = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const site = (options = {}) => stage.site({ features: { bot_guard: true }, modules: { bot_guard: options } });
const hit = async ({ host }: StagedSite, agent: string, cf: object = {}, path = '/g/collect?v=2') => {
  stage.upstream.received.length = 0;
  const headers = {
    'user-agent': agent,
    'cf-connecting-ip': '203.0.113.7',
    'mf-cf-blob': JSON.stringify(cf),
    'x-device-bot': 'false',
  };
  const { status } = await stage.send(host, path, { method: 'POST', headers });
  const arrived = stage.upstream.received[0]?.headers;
  return { status, told: arrived && [arrived['x-device-bot'], arrived['x-device-bot-score']] };
};

describe('a hit', () => {
  test.each([
    ['of a bot that names itself', GOOGLEBOT, {}, ['true', '100']],
    ['of a browser', BROWSER, {}, ['false', '0']],
    ['that Cloudflare is certain of', BROWSER, { botManagement: { score: 1 } }, ['true', '100']],
    ['that Cloudflare suspects', BROWSER, { botManagement: { score: 20 } }, ['true', '80']],
    ['at the threshold', BROWSER, { botManagement: { score: 25 } }, ['false', '75']],
    ['with nonsense as its score', BROWSER, { botManagement: { score: 500 } }, ['false', '0']],
  ])('%s is marked', async (_case, agent, cf, told) => {
    expect(await hit(await site(), agent, cf)).toEqual({ status: 200, told });
  });

  test('of a bot is refused if the site says so, but not at an exception, and a script isn’t', async () => {
    const refusing = await site({ action: 'refuse', except: ['/mp/collect'] });
    await stage.seen();
    expect(await hit(refusing, GOOGLEBOT)).toEqual({ status: 204, told: undefined });
    expect((await stage.seen()).records[0]?.counters).toEqual({ 'bot_guard.refused': 1 });
    expect(await hit(refusing, BROWSER)).toMatchObject({ status: 200 });
    expect(await hit(refusing, GOOGLEBOT, {}, '/mp/collect')).toEqual({
      status: 200,
      told: [undefined, undefined],
    });
    const script = await stage.send(refusing.host, '/gtm.js?id=GTM-X', {
      headers: { 'user-agent': GOOGLEBOT },
    });
    expect(script.status).toBe(200);
  });
});

test('a bot’s bootstrap is refused, a browser’s is answered', async () => {
  const refusing = await site({ action: 'refuse' });
  expect((await stage.boot(refusing, {}, { 'user-agent': GOOGLEBOT })).status).toBe(204);
  expect((await stage.boot(refusing, {}, { 'user-agent': BROWSER })).status).toBe(200);
});

test('nothing is told without the feature', async () => {
  expect((await hit(await stage.site(), GOOGLEBOT)).told).toEqual([undefined, undefined]);
});

test.each(['bingbot/2.0', 'AhrefsBot/7.0', 'facebookexternalhit/1.1', 'PetalBot', 'GPTBot/1.2'])(
  'the crawler %s is a bot',
  async (name) => {
    const { told } = await hit(await site(), `Mozilla/5.0 (compatible; ${name})`);
    expect(told).toEqual(['true', '100']);
  },
);
