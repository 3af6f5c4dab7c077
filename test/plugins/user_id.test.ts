import { afterAll, beforeAll, expect, test } from 'vitest';
import { type SiteOptions, type Stage, type StagedSite, startStage } from '../support/edge/stage.ts';

const ID = '0123456789abcdef0123456789abcdef';
let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

const features = { user_id: true };
const told = async ({ host }: StagedSite, query = '', headers: Record<string, string> = {}) => {
  stage.upstream.received.length = 0;
  const forged = { 'x-tagyard-user-id': 'forged', 'x-stape-user-id': 'forged' };
  await stage.send(host, `/g/collect?v=2${query}`, {
    headers: { cookie: `_ga=1; _fpid=${ID}`, ...forged, ...headers },
  });
  const arrived = stage.upstream.received[0]?.headers ?? {};
  return [arrived['x-tagyard-user-id'], arrived['x-stape-user-id']];
};
const HMAC = expect.stringMatching(/^[0-9a-f]{64}$/);

test('the id is the same at each hit, differs between sites, and isn’t the cookie’s', async () => {
  const [one, other] = [await stage.site({ features }), await stage.site({ features })];
  const first = await told(one);
  expect(first).toEqual([HMAC, undefined]);
  expect(await told(one)).toEqual(first);
  expect(await told(other)).not.toEqual(first);
  expect(first[0]).not.toContain(ID);
});

test('the site chooses the name', async () => {
  const site = await stage.site({ features, modules: { user_id: { header: 'x-stape-user-id' } } });
  expect(await told(site)).toEqual([undefined, HMAC]);
});

const NOTHING = [undefined, undefined];
test.each<
  [name: string, consent: SiteOptions['consent'], query: string, headers: Record<string, string>, ok: boolean]
>([
  ['no choice, opt-out', 'opt_out', '', {}, true],
  ['no choice, required', 'required', '', {}, false],
  ['granted by gcs', 'required', '&gcs=G101', {}, true],
  ['ads only by gcs', 'required', '&gcs=G110', {}, false],
  ['denied by gcs, opt-out', 'opt_out', '&gcs=G100', {}, false],
  ['granted by gcd', 'required', '&gcd=13r3r3r2r1', {}, true],
  ['denied by gcd, opt-out', 'opt_out', '&gcd=13p3p3p2p1', {}, false],
  ['gcd without a choice', 'required', '&gcd=13l3l3l2l1', {}, false],
  ['gcs before gcd', 'opt_out', '&gcs=G100&gcd=13r3r3r2r1', {}, false],
  ['analytics alone denied by gcs', 'opt_out', '&gcs=G1-0', {}, false],
  ['analytics alone granted by gcs', 'required', '&gcs=G1-1', {}, true],
  ['gcd where gcs has no choice', 'opt_out', '&gcs=G1--&gcd=13p3p3p2p5l1', {}, false],
  ['an unknown letter', 'required', '&gcd=13r3o3r2r5l1', {}, false],
  ['an unknown letter, opt-out', 'opt_out', '&gcd=13r3o3r2r5l1', {}, true],
  ['a denial after an unknown letter', 'opt_out', '&gcd=13L3p3r2r5l1', {}, false],
  ['a letter between two choices', 'opt_out', '&gcd=1ap3p3p2p5l1', {}, false],
  ['nonsense', 'required', '&gcs=G1&gcd=granted', {}, false],
  ['Sec-GPC', 'opt_out', '&gcs=G111', { 'sec-gpc': '1' }, false],
  ['a bot', 'opt_out', '', { 'user-agent': 'Googlebot/2.1' }, false],
  ['a malformed id', 'opt_out', '', { cookie: '_fpid=x' }, false],
])('%s', async (_name, consent, query, headers, ok) => {
  const site = await stage.site({ features, ...(consent && { consent }) });
  expect(await told(site, query, headers)).toEqual(ok ? [HMAC, undefined] : NOTHING);
});

test('a site without the feature tells none', async () => {
  expect(await told(await stage.site())).toEqual(NOTHING);
});
