import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Check } from '../../edge/verification/contract.ts';
import { addVerification } from '../../management/verification/verification.repository.ts';
import { CONFIG, creation, World } from '../support/management/world.ts';

let world: World;
let at: string;
let id: string;
let edge: string;
beforeAll(async () => {
  world = await World.open();
  const body = creation(await world.client());
  const created = await world.call('POST', '/server-containers', { as: 'owner', body });
  ({ id } = created.body);
  edge = created.body.hostnames.edge;
  at = `/server-containers/${id}/checklist`;
});
afterAll(() => world.close());

interface Row {
  readonly id: string;
  readonly state: string;
  readonly detail: string;
}

const statesOf = (items: readonly Row[]) => Object.fromEntries(items.map((row) => [row.id, row.state]));
const read = async (as = 'viewer') => await world.call('GET', at, { as });
const upload = async (containerVersion: object, { as = 'owner', query = '' } = {}) =>
  await world.call('POST', `${at}/export${query}`, {
    as,
    body: { exportFormatVersion: 2, exportTime: '2026-01-01 00:00:00', containerVersion },
  });

const row = (name: string, value: string, [key, other] = ['parameter', 'parameterValue']) => ({
  type: 'MAP',
  map: [
    { type: 'TEMPLATE', key, value: name },
    { type: 'TEMPLATE', key: other, value },
  ],
});
const table = (key: string, ...list: object[]) => ({ type: 'LIST', key, list });
const tag = (...parameter: object[]) => ({ type: 'googtag', name: 'Google tag', parameter });
const toServer = (url: string) => tag(table('configSettingsTable', row('server_container_url', url)));
const web = (tags: object[], { publicId = 'GTM-ABC1234', variable = [] as object[] } = {}) => ({
  container: { publicId, usageContext: ['WEB'] },
  tag: tags,
  variable,
});
const server = (taggingServerUrls: string[], client: object[]) => ({
  container: { publicId: 'GTM-SRV12345', usageContext: ['SERVER'], taggingServerUrls },
  client,
});

test('the checklist knows nothing before a verification or an upload, and says where to click', async () => {
  const { status, body } = await read();
  expect(status).toBe(200);
  expect(body.items).toHaveLength(6);
  for (const item of body.items)
    expect(item).toMatchObject({ state: 'unknown', checkedAt: null, where: expect.stringContaining(':') });
});

test('the checklist takes what the last verification has seen from outside', async () => {
  const checks = (script: 'passed' | 'failed'): Check[] => [
    { name: 'container_config', subject: null, status: 'passed', detail: '', fix: null },
    { name: 'script', subject: 'acme.example', status: 'passed', detail: '', fix: null },
    { name: 'script', subject: 'b.example', status: script, detail: '', fix: null },
  ];
  for (const [script, expected] of [
    ['failed', 'open'],
    ['passed', 'done'],
  ] as const) {
    await addVerification(world.db, id, {
      ...{ status: script, checkedAt: '2026-01-01T00:00:00.000Z', checks: checks(script) },
    });
    expect(statesOf((await read()).body.items)).toMatchObject({
      server_container: 'done',
      published: expected,
    });
  }
});

test.each([
  ['the edge hostname in the settings of the tag', () => web([toServer(`https://${edge}`)]), 'done'],
  ['another server', () => web([toServer('https://sst.other.example')]), 'open'],
  ['a host that only contains ours', () => web([toServer(`https://${edge}.evil.example`)]), 'open'],
  ['no address', () => web([tag()]), 'open'],
  ['no Google tag', () => web([]), 'open'],
  ['only a paused Google tag', () => web([{ ...toServer(`https://${edge}`), paused: true }]), 'open'],
  ['one of two tags without the hostname', () => web([toServer(`https://${edge}`), tag()]), 'open'],
  [
    'a constant',
    () =>
      web([toServer('{{Server}}')], {
        variable: [
          {
            type: 'c',
            name: 'Server',
            parameter: [{ type: 'TEMPLATE', key: 'value', value: `https://${edge}` }],
          },
        ],
      }),
    'done',
  ],
  [
    'a variable of the page',
    () => web([toServer('{{Server}}')], { variable: [{ type: 'jsm', name: 'Server', parameter: [] }] }),
    'unknown',
  ],
  [
    'a variable with the settings',
    () =>
      web([tag({ type: 'TEMPLATE', key: 'configSettingsVariable', value: '{{Shared}}' })], {
        variable: [
          {
            type: 'gtcs',
            name: 'Shared',
            parameter: [table('configSettingsTable', row('server_container_url', `https://${edge}/`))],
          },
        ],
      }),
    'done',
  ],
  [
    'the field of GA4’s older configuration',
    () =>
      web([
        {
          type: 'gaawc',
          name: 'GA4',
          parameter: [table('fieldsToSet', row('transport_url', `https://${edge}`, ['name', 'value']))],
        },
      ]),
    'done',
  ],
])('the checklist judges a web container with %s', async (_what, exported, expected) => {
  const { status, body } = await upload(exported());
  expect(status).toBe(200);
  expect(statesOf(body.items)).toMatchObject({ google_tag: expected, ids_agree: 'done' });
});

test('the checklist finds a web container that no domain loads, and a server container without URL and client', async () => {
  const foreign = await upload(web([toServer(`https://${edge}`)], { publicId: 'GTM-OTHER12' }));
  expect(statesOf(foreign.body.items)).toMatchObject({ ids_agree: 'open' });
  const bare = await upload(server([], []));
  expect(statesOf(bare.body.items)).toMatchObject({ tagging_server_url: 'open', client_claims: 'open' });
  const custom = await upload(server(['https://sst.other.example'], [{ type: 'cvt_1_2', name: 'Data' }]));
  expect(statesOf(custom.body.items)).toMatchObject({ tagging_server_url: 'open', client_claims: 'unknown' });
  const right = await upload(server([`https://${edge}`], [{ type: 'gaaw_client', name: 'GA4' }]));
  expect(statesOf(right.body.items)).toMatchObject({ tagging_server_url: 'done', client_claims: 'done' });
});

test('nothing of an export is kept but the verdicts', async () => {
  const secret = 'EAAB-not-to-be-kept';
  const variable = [
    { type: 'c', name: secret, parameter: [{ type: 'TEMPLATE', key: 'value', value: secret }] },
  ];
  expect((await upload(web([toServer(`https://${secret}.example`)], { variable }))).status).toBe(200);
  const rows = await world.owner.selectFrom('checklist_verdicts').selectAll().execute();
  expect(rows.length).toBeGreaterThan(0);
  expect(JSON.stringify(rows).toLowerCase()).not.toContain(secret.toLowerCase());
  expect(world.logs.join().toLowerCase()).not.toContain(secret.toLowerCase());
});

test('an upload changes nothing in a dry run, and is refused to viewers and strangers', async () => {
  await upload(web([tag()]));
  const planned = await upload(web([toServer(`https://${edge}`)]), { query: '?dryRun=1' });
  expect(planned.body.plan.changes).toEqual([{ path: 'items[google_tag].state', from: 'open', to: 'done' }]);
  expect(statesOf((await read()).body.items)).toMatchObject({ google_tag: 'open' });
  expect((await upload(web([]), { as: 'viewer' })).status).toBe(403);
  expect((await upload(web([]), { as: 'stranger' })).status).toBe(404);
  expect((await read('stranger')).status).toBe(404);
});

test.each([
  ['another kind of container', { container: { publicId: 'GTM-A', usageContext: ['IOS'] } }, 400],
  ['no container', { tag: [] }, 400],
  ['too many tags', web(Array.from({ length: 5_001 }, () => tag())), 400],
  ['more than eight megabytes', web([tag({ key: 'x', value: CONFIG.repeat(120_000) })]), 413],
])('an export with %s is refused', async (_what, exported, status) => {
  expect((await upload(exported)).status).toBe(status);
});

test('an export of five megabytes that begins with a byte order mark is read', async () => {
  const templates = { customTemplate: [{ name: 'Template', templateData: 'x'.repeat(5_000_000) }] };
  const authorization = `Bearer ${await world.issuer.token('owner')}`;
  const answer = await world.management?.app.inject({
    ...{ method: 'POST', url: `${at}/export` },
    headers: { authorization, 'content-type': 'application/json' },
    payload: `\ufeff${JSON.stringify({ containerVersion: { ...web([toServer(`https://${edge}`)]), ...templates } })}`,
  });
  expect(answer?.statusCode).toBe(200);
  expect(statesOf(answer?.json().items)).toMatchObject({ google_tag: 'done' });
});

test('parameters are read only to some depth', async () => {
  let deep: object = row('server_container_url', `https://${edge}`);
  for (let depth = 0; depth < 2_000; depth += 1) deep = { type: 'LIST', list: [deep] };
  const { status, body } = await upload(web([tag(deep)]));
  expect([status, statesOf(body.items).google_tag]).toEqual([200, 'open']);
});
