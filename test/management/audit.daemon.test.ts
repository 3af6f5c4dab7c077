import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { creation, World } from '../support/management/world.ts';

let world: World;
let client: string;
let id: string;
beforeAll(async () => {
  world = await World.open({ logLevel: 'silent' });
  client = await world.client();
  const body = { name: 'Theirs', members: [{ subject: '=other,"x"', role: 'owner' }] };
  await world.call('POST', '/clients', { as: 'root', body });
  const made = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  id = made.body.id;
  await world.call('PATCH', `/server-containers/${id}`, { as: 'admin', body: { name: 'Renamed' } });
  await world.call('PATCH', `/server-containers/${id}`, { as: 'viewer', body: { name: 'Refused' } });
  // A stranger's attempt.
  await world.call('DELETE', `/server-containers/${id}`, { as: '=other,"x"' });
});
afterAll(() => world.close());

const audit = async (as: string, query = '') => (await world.call('GET', `/audit${query}`, { as })).body;
const actions = async (as: string, query = '') =>
  (await audit(as, query)).items.map(
    ({ actor, action, status }: Record<string, string>) => `${actor} ${action} ${status}`,
  );
const OURS = [
  'viewer changeContainer 403',
  'admin changeContainer 200',
  'owner createContainer 202',
  'root createClient 201',
];

test.each(['owner', 'admin'])(
  'an %s reads the rows of clients where it has this role, the newest first',
  async (as) => {
    expect(await actions(as)).toEqual(OURS);
    const { items } = await audit(as);
    expect(items[1]).toMatchObject({ containerId: id, clientId: client, revision: expect.any(String) });
  },
);

test('a viewer reads no rows, not even when the request names a client', async () => {
  expect(await audit('viewer')).toEqual({ items: [], next: null });
  expect((await world.call('GET', `/audit?client=${client}`, { as: 'viewer' })).status).toBe(403);
  expect((await world.call('GET', `/audit?client=${client}`, { as: 'stranger' })).status).toBe(404);
});

test('an operator reads all rows, also the attempts of strangers', async () => {
  expect(await actions('root')).toEqual([
    '=other,"x" removeContainer 404',
    ...OURS.slice(0, 3),
    'root createClient 201',
    'root createClient 201',
  ]);
});

test.each<[string, (at: string) => string, string[]]>([
  ['an actor', () => '?actor=admin', [OURS[1] ?? '']],
  ['an action', () => '?action=createContainer', [OURS[2] ?? '']],
  ['a status', () => '?status=403', [OURS[0] ?? '']],
  ['a container', () => `?container=${id}&actor=owner`, [OURS[2] ?? '']],
  ['a client', () => `?client=${client}&action=createClient`, [OURS[3] ?? '']],
  ['a beginning', (at) => `?from=${at}`, OURS.slice(0, 2)],
  ['an end', (at) => `?to=${at}`, OURS.slice(2)],
])('rows are filtered by %s', async (_what, query, expected) => {
  const { items } = await audit('owner');
  expect(await actions('owner', query(encodeURIComponent(items[1].at)))).toEqual(expected);
});

test('pages don’t shift by new rows', async () => {
  const first = await audit('owner', '?limit=2');
  await world.call('PATCH', `/server-containers/${id}`, { as: 'viewer', body: { name: 'New row' } });
  const rest = await actions('owner', `?limit=2&cursor=${first.next}`);
  expect(rest).toEqual(OURS.slice(2));
  expect((await audit('owner', `?limit=4&cursor=${first.next}`)).next).toBeNull();
});

async function download(as: string, accept: string): Promise<{ type: unknown; text: string }> {
  const authorization = `Bearer ${await world.issuer.token(as)}`;
  const answer = await world.management?.app.inject({ url: '/audit', headers: { authorization, accept } });
  return { type: answer?.headers['content-type'], text: answer?.body ?? '' };
}

test('an export as NDJSON has all rows', async () => {
  const { type, text } = await download('root', 'application/x-ndjson');
  expect(type).toBe('application/x-ndjson; charset=utf-8');
  const rows = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  expect(rows).toEqual((await audit('root')).items);
});

test('an export as CSV has no field that a spreadsheet takes for a formula', async () => {
  const { type, text } = await download('root', 'text/csv');
  expect(type).toBe('text/csv; charset=utf-8');
  const [head, ...lines] = text.trimEnd().split('\r\n');
  expect(head).toBe(
    'id,at,actor,action,status,code,clientId,organisationId,containerId,requestId,revision,count',
  );
  expect(lines).toHaveLength((await audit('root')).items.length);
  expect(lines.find((line) => line.includes('removeContainer'))).toContain(
    `,"'=other,""x""",removeContainer,404,`,
  );
});

test('the owner reads what an admin did with invitations and tokens', async () => {
  const invitation = await world.call('POST', `/clients/${client}/invitations`, {
    as: 'admin',
    body: { role: 'viewer' },
  });
  const { token } = invitation.body;
  await world.call('POST', '/invitations/accept', { as: 'new', body: { token } });
  const made = await world.call('POST', '/tokens', {
    as: 'admin',
    body: { name: 'CI', client, scopes: ['viewer'] },
  });
  await world.call('DELETE', `/tokens/${made.body.id}`, { as: 'admin' });
  expect(await actions('owner', `?client=${client}&limit=4`)).toEqual([
    'admin revokeToken 204',
    'admin createToken 201',
    'new acceptInvitation 200',
    'admin invite 201',
  ]);
});

test('an owner sees the refused requests of members and operators, and none of strangers', async () => {
  const before = await actions('owner');
  const webhook = await world.call('POST', '/webhooks', {
    as: 'owner',
    body: { clientId: client, url: 'https://hooks.example/a' },
  });
  expect(webhook.status).toBe(201);
  const send = async (as: string, url = `/server-containers/${id}`) =>
    (await world.call('PATCH', url, { as, body: { x: 1 } })).status;
  expect(await send('=other,"x"')).toBe(404);
  const deleted = await world.call('DELETE', `/webhooks/${webhook.body.id}`, { as: '=other,"x"' });
  expect(deleted.body.code).toBe('unknown_webhook');
  expect(await send('admin')).toBe(400);
  expect(await send('root', `/clients/${client}`)).toBe(400);
  expect(await actions('owner')).toEqual([
    'root changeClient 400',
    'admin changeContainer 400',
    'owner createWebhook 201',
    ...before,
  ]);
  expect((await actions('root')).slice(2, 4)).toEqual([
    '=other,"x" deleteWebhook 404',
    '=other,"x" changeContainer 404',
  ]);
});

test('an organisation’s owner reads what was done with it, with its members and with what it owns', async () => {
  const boss = { subject: 'boss', role: 'owner' };
  const made = await world.call('POST', '/organisations', {
    as: 'root',
    body: { name: 'Agency', members: [boss, { subject: 'junior', role: 'viewer' }] },
  });
  const organisation = made.body.id;
  const at = `/organisations/${organisation}`;
  await world.call('PATCH', at, { as: 'boss', body: { name: 'Agency Ltd' } });
  await world.call('PUT', `${at}/members/ada`, { as: 'boss', body: { role: 'admin' } });
  await world.call('DELETE', `${at}/members/ada`, { as: 'boss' });
  await world.call('PATCH', at, { as: 'junior', body: { name: 'Refused' } });
  await world.call('PATCH', at, { as: 'stranger', body: { name: 'Refused' } });
  await world.call('POST', `${at}/invitations`, { as: 'boss', body: { role: 'viewer' } });
  const token = await world.call('POST', '/tokens', {
    as: 'boss',
    body: { name: 'CI', organisation, scopes: ['viewer'] },
  });
  await world.call('DELETE', `/tokens/${token.body.id}`, { as: 'boss' });
  const ours = [
    'boss revokeToken 204',
    'boss createToken 201',
    'boss inviteToOrganisation 201',
    'junior changeOrganisation 403',
    'boss removeMemberOfOrganisation 204',
    'boss putMemberOfOrganisation 200',
    'boss changeOrganisation 200',
    'root createOrganisation 201',
  ];
  expect(await actions('boss')).toEqual(ours);
  expect(await actions('boss', `?organisation=${organisation}&limit=3`)).toEqual(ours.slice(0, 3));
  expect((await audit('boss')).items[0]).toMatchObject({ organisationId: organisation, clientId: null });
  expect(await actions('root', `?organisation=${organisation}`)).toHaveLength(ours.length + 1);
  expect(await actions('owner')).not.toContain('boss changeOrganisation 200');
  const read = async (as: string) =>
    (await world.call('GET', `/audit?organisation=${organisation}`, { as })).status;
  expect([await read('junior'), await read('stranger'), await read('admin')]).toEqual([403, 404, 404]);
  // A client of the organisation has rows of its own, which the organisation’s owner reads too.
  const own = await world.call('POST', '/clients', { as: 'boss', body: { name: 'Shop', organisation } });
  expect((await audit('boss')).items[0]).toMatchObject({
    action: 'createClient',
    clientId: own.body.id,
    organisationId: null,
  });
});

test('what is refused to a caller without a role is one row for each hour, action and code, with their number', async () => {
  const stranger = `flood ${randomUUID()}`;
  const deletions = Array.from({ length: 20 }, () => `/server-containers/${randomUUID()}`);
  for (const url of [`/server-containers/${id}`, ...deletions]) {
    expect((await world.call('DELETE', url, { as: stranger })).status).toBe(404);
  }
  const accept = { as: stranger, body: { token: 'tgi_no' } };
  for (let n = 0; n < 20; n += 1) await world.call('POST', '/invitations/accept', accept);
  const bulk = { as: stranger, body: { items: [{ verb: 'protect', id }] } };
  for (let n = 0; n < 20; n += 1) expect((await world.call('POST', '/bulk', bulk)).status).toBe(404);
  const { items } = await audit('root', `?actor=${encodeURIComponent(stranger)}`);
  const sums = new Map<string, number>();
  for (const { action, code, count } of items) {
    sums.set(`${action} ${code}`, (sums.get(`${action} ${code}`) ?? 0) + count);
  }
  expect([...sums]).toEqual([
    ['changeContainers unknown_client', 20],
    ['acceptInvitation unknown_invitation', 20],
    ['removeContainer unknown_container', 21],
  ]);
  // The hour may have ended meanwhile.
  expect(items.length).toBeLessThanOrEqual(6);
});

test('what is refused to a member is summed by what it was about', async () => {
  const second = await world.call('POST', '/server-containers', {
    as: 'owner',
    body: creation(client, 'second.example'),
  });
  for (const container of [id, second.body.id, second.body.id]) {
    await world.call('DELETE', `/server-containers/${container}`, { as: 'viewer' });
  }
  const { items } = await audit('owner', '?actor=viewer&action=removeContainer');
  const seen = items.map(({ containerId, count }: { containerId: string; count: number }) => [
    containerId,
    count,
  ]);
  expect(seen).toEqual([
    [second.body.id, 2],
    [id, 1],
  ]);
});

test('refusals are one row for each hour, however many things the caller names in their addresses', async () => {
  const stranger = `plans ${randomUUID()}`;
  for (let n = 0; n < 4; n += 1) {
    const plan = await world.call('POST', `/plans/${n}${'a'.repeat(63)}/approve`, { as: stranger });
    expect(plan.status).toBe(403);
    const member = await world.call('DELETE', `/clients/${client}/members/nobody-${n}`, { as: 'viewer' });
    expect(member.status).toBe(403);
  }
  // The hour may have ended meanwhile.
  const { items: plans } = await audit('root', `?actor=${encodeURIComponent(stranger)}`);
  const refused = (await audit('owner', '?actor=viewer&status=403')).items;
  const members = refused.filter(({ action }: { action: string }) => action.startsWith('removeMember'));
  expect([members.length, plans.length].every((rows) => rows === 1 || rows === 2)).toBe(true);
});
