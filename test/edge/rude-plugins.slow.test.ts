import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage('rude.ts');
});
afterAll(() => stage.close());

const rudeSite = (...flags: string[]) =>
  stage.site({
    features: Object.fromEntries(
      [...flags, 'cookie_restoration', 'multi_domain'].map((flag) => [flag, true]),
    ),
    domains: [{}, {}],
  });

/** Asserts that everything that a page needs from the edge works. */
async function works(site: StagedSite) {
  stage.upstream.reply = () => ({ headers: { 'content-type': 'text/javascript' }, body: 'tag' });
  const second = `https://${site.domains[1]?.domain}/`;
  expect(await stage.send(site.host, `/l/${site.loader}.js`)).toMatchObject({
    status: 200,
    text: expect.stringContaining('"cookies":["_ga"'),
  });
  const first = await stage.boot(site, { cookies: { _ga: '1' } });
  expect(first).toMatchObject({ status: 200, json: { profile: { isNew: true } } });
  expect(await stage.boot(site, { fpid: first.json.profile.id })).toMatchObject({
    status: 200,
    json: { profile: { isNew: false }, restoreCookies: [{ name: '_ga' }] },
  });
  expect((await stage.boot(site, { url: second })).status).toBe(200);
  expect(await stage.send(site.host, `/c/${site.domains[0]?.token}.js`)).toMatchObject({
    status: 200,
    text: 'tag',
  });
  expect(await stage.send(site.host, '/g/collect')).toMatchObject({ status: 200, text: 'tag' });
}

describe('a plugin whose hooks', () => {
  test.each([
    ['throw', 'throws'],
    ['reject', 'rejects'],
    ['never resolve, before the route', 'hangs_before'],
    ['never resolve, after the route', 'hangs_after'],
    ['never resolve, in the bootstrap', 'hangs_boot'],
    ['return something other than a Response', 'babbles'],
    ['send a request to another path', 'elsewhere'],
    ['read the response and fail', 'uses_up'],
  ])('%s: the paths of all other plugins work, and the log names the plugin', async (_how, flag) => {
    await stage.seen();
    await works(await rudeSite(flag));
    const { events } = await stage.seen();
    expect(
      events.filter(({ event }) => event === 'plugin_failed').map(({ fields }) => fields.plugin),
    ).toContain(flag);
  });
});

describe('a plugin whose handler', () => {
  test.each([
    ['throws', 'handler_throws', '/handler-throws'],
    ['returns something other than a Response', 'handler_babbles', '/handler-babbles'],
  ])('%s: a generic 500 on its own path, other paths work', async (_how, flag, path) => {
    const site = await rudeSite(flag);
    const answer = await stage.send(site.host, path);
    expect(answer).toMatchObject({ status: 500, json: { code: 'internal' } });
    expect(answer.text).not.toMatch(/rude|Response|garbage/);
    await works(site);
  });

  test('never resolves: its path answers an error in the end, other paths work meanwhile', async () => {
    const site = await rudeSite('handler_hangs');
    const hanging = stage.send(site.host, '/handler-hangs');
    await works(site);
    expect((await hanging).status).toBeGreaterThanOrEqual(500);
  });
});

test('disabled plugins have no effect', async () => {
  await stage.seen();
  await works(await rudeSite());
  expect((await stage.seen()).events).toEqual([]);
});
