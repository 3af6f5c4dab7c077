import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage('cache-scopes.ts');
});
afterAll(() => stage.close());

test('what a plugin keeps in memory is its own, and the site’s, unless it says otherwise', async () => {
  const [one, other] = [await stage.site(), await stage.site()];
  const held = async (host: string, plugin: string) => (await stage.send(host, `/${plugin}`)).json;
  await stage.send(one.host, '/magpie', { method: 'POST' });
  expect(await held(one.host, 'magpie')).toEqual({ own: `magpie of ${one.id}`, acrossSites: 'magpie' });
  expect(await held(other.host, 'magpie')).toEqual({ own: null, acrossSites: 'magpie' });
  expect(await held(one.host, 'squirrel')).toEqual({ own: null, acrossSites: null });
  await stage.send(other.host, '/magpie', { method: 'POST' });
  await stage.send(one.host, '/squirrel', { method: 'POST' });
  expect(await held(one.host, 'magpie')).toEqual({ own: `magpie of ${one.id}`, acrossSites: 'magpie' });
  expect(await held(one.host, 'squirrel')).toEqual({ own: `squirrel of ${one.id}`, acrossSites: 'squirrel' });
});

test('a run under way is joined by the same plugin’s requests for the same site only', async () => {
  const [one, other] = [await stage.site(), await stage.site()];
  // Nobody is answered before all three have asked, which they only do in runs of their own.
  const all = Promise.withResolvers<object>();
  stage.upstream.received.length = 0;
  stage.upstream.reply = () => {
    if (stage.upstream.received.length === 3) all.resolve({});
    return all.promise;
  };
  const answers = await Promise.all([
    stage.send(one.host, '/magpie/run'),
    stage.send(other.host, '/magpie/run'),
    stage.send(one.host, '/squirrel/run'),
  ]);
  expect(answers.map(({ text }) => text)).toEqual([
    `magpie of ${one.id}`,
    `magpie of ${other.id}`,
    `squirrel of ${one.id}`,
  ]);
});
