import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage('boot-members.ts');
});
afterAll(() => stage.close());

const CORE = ['container', 'site', 'features', 'profile', 'session', 'restoreCookies'];

describe('the member that a plugin returns from boot', () => {
  test('is in the answer of /boot under the plugin’s name', async () => {
    const site = await stage.site({
      features: { greeting: true, cookie_restoration: true },
      modules: { greeting: { text: 'good morning' } },
    });
    const { profile } = (await stage.boot(site, { cookies: { _ga: 'GA1.1.1' } })).json;
    const { status, json } = await stage.boot(site, { fpid: profile.id });
    expect(status).toBe(200);
    expect(Object.keys(json).toSorted()).toEqual([...CORE, 'greeting'].toSorted());
    expect(json.greeting).toEqual({ text: 'good morning', domain: site.domains[0]?.domain });
    expect(json.restoreCookies).toMatchObject([{ name: '_ga', value: 'GA1.1.1' }]);
  });

  test.each([
    ['is missing where the plugin is off', {}],
    ['is missing where JSON can’t hold it', { unserializable: true }],
    ['is missing where it is undefined', { silent: true }],
  ])('%s', async (_name, features) => {
    const site = await stage.site({ features });
    const { status, json } = await stage.boot(site);
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual(CORE);
    expect(json.restoreCookies).toEqual([]);
  });

  test('is missing while EDGE_CONFIG can’t be read', async () => {
    const site = await stage.site({ features: { greeting: true } });
    await stage.fault('EDGE_CONFIG', 'fail');
    const { status, json } = await stage.boot(site);
    await stage.fault('EDGE_CONFIG', null);
    expect(status).toBe(200);
    expect(Object.keys(json)).toEqual(CORE);
  });

  test('is logged as the plugin’s failure where JSON can’t hold it', async () => {
    const site = await stage.site({ features: { unserializable: true } });
    await stage.seen();
    await stage.boot(site);
    expect((await stage.seen()).events).toContainEqual({
      event: 'plugin_failed',
      fields: expect.objectContaining({ plugin: 'unserializable' }),
    });
  });
});

test('an answer whose body a hook has changed arrives whole, and its record states no length', async () => {
  const site = await stage.site({ features: { rewriter: true } });
  await stage.seen();
  const { text, json } = await stage.boot(site);
  expect(json.site.id).toBe(site.id);
  expect(text).toMatch(/\} {99}$/);
  expect((await stage.seen()).records.map(({ bytesOut }) => bytesOut)).toEqual([null]);
});
