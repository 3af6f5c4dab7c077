import { afterAll, beforeAll, expect, test } from 'vitest';
import { edgeStore, namespaceTitle, PROFILES } from '../../gitops/appliers/edge/store.ts';
import { ensureNamespace } from '../../sites/local/cloudflare/api/state.ts';
import { sqliteKvStore } from '../../sites/local/cloudflare/kv/store.ts';
import { EMULATOR_SCRIPT, startEmulator } from '../support/cloudflare/emulator.ts';
import { creation, World } from '../support/management/world.ts';

const FPID = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';
const DAY_MS = 86_400_000;

let world: World;
let emulator: Awaited<ReturnType<typeof startEmulator>>;
let site: string;
let container: string;
const put = async (visitor: string, record: object) => {
  const { id } = ensureNamespace(emulator.db, namespaceTitle(EMULATOR_SCRIPT, PROFILES));
  const kv = sqliteKvStore(emulator.db, id, () => new Date());
  await kv.put(`${site}:${visitor}`, JSON.stringify(record), {});
};

beforeAll(async () => {
  emulator = await startEmulator();
  ensureNamespace(emulator.db, namespaceTitle(EMULATOR_SCRIPT, PROFILES));
  world = await World.open();
  world.provisioner.profiles = edgeStore(emulator.client(), EMULATOR_SCRIPT);
  const client = await world.client();
  const { body } = await world.call('POST', '/server-containers', { as: 'owner', body: creation(client) });
  container = body.id;
  site = body.siteId;
});
afterAll(async () => {
  await world.close();
  await emulator.close();
});

const call = async (method: 'GET' | 'DELETE', visitor: string, as = 'owner', query = '') =>
  await world.call(method, `/server-containers/${container}/profiles/${visitor}${query}`, { as });

test('an owner reads and erases what is kept of a visitor, and the audit log names who did it', async () => {
  const now = Date.now();
  const cookies = ['_ga', '_fbp', 'basket'].map((name) => ({
    name,
    value: `value of ${name}`,
    setAt: now - DAY_MS,
    expiresAt: now + DAY_MS,
  }));
  const record = { version: 1, session: { id: 's', lastSeenAt: now }, cookies, startedAt: now - DAY_MS };
  await put(FPID, record);
  await put(OTHER, record);

  const { status, body } = await call('GET', FPID);
  expect(status).toBe(200);
  expect(body.profile).toMatchObject({
    since: new Date(now - DAY_MS).toISOString(),
    lastSeenAt: new Date(now).toISOString(),
    cookies: [
      { name: '_ga', value: 'value of _ga', purpose: 'analytics' },
      { name: '_fbp', purpose: 'ads' },
      { name: 'basket', purpose: 'both' },
    ],
  });
  expect(body.consent).toMatchObject({ consent: 'opt_out', consentMaxDays: 395 });

  expect((await call('DELETE', FPID, 'owner', '?dryRun=1')).body).toEqual({
    plan: { cookies: ['_ga', '_fbp', 'basket'] },
  });
  expect((await call('GET', FPID)).body.profile).not.toBeNull();
  const erased = (await call('DELETE', FPID)).body;
  expect(erased.erased).toBe(true);
  expect(Date.parse(erased.erasedBy) - now).toBeGreaterThanOrEqual(60_000);
  expect((await call('GET', FPID)).body.profile).toBeNull();
  expect((await call('DELETE', FPID)).body.erased).toBe(false);
  expect((await call('GET', OTHER)).body.profile).not.toBeNull();

  const rows = await world.owner
    .selectFrom('audit_log')
    .select(['actor', 'action', 'code', 'status', 'container_id'])
    .where('action', 'in', ['readProfile', 'eraseProfile'])
    .orderBy('seq')
    .execute();
  expect(rows.slice(0, 4)).toMatchObject([
    { actor: 'owner', action: 'readProfile', status: 200, container_id: container },
    { action: 'eraseProfile', code: 'dry_run', status: 200 },
    { action: 'readProfile' },
    { action: 'eraseProfile', code: null, status: 200 },
  ]);
  // Neither the visitor's id nor a value is in the log of the process.
  expect(world.logs.join('')).not.toContain(FPID);
  expect(world.logs.join('')).not.toContain('value of');
});

test('only owners may read or erase a profile, and only by the id of a visitor', async () => {
  for (const method of ['GET', 'DELETE'] as const) {
    expect((await call(method, OTHER, 'admin')).body.code).toBe('forbidden');
    expect((await call(method, OTHER, 'stranger')).body.code).toBe('unknown_container');
    expect((await call(method, 'master:0123')).body.code).toBe('invalid_request');
  }
  world.provisioner.profiles = {
    ...world.provisioner.profiles,
    profile: async () => await Promise.reject(new Error('Cloudflare is away')),
  };
  expect((await call('GET', OTHER)).body.code).toBe('host_unavailable');
});
