import Cloudflare, { toFile } from 'cloudflare';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { REAL_LIMITS } from '../../../../sites/local/cloudflare/api/limits.ts';
import {
  EMULATOR_SCRIPT,
  EMULATOR_TOKEN,
  startEmulator,
  type TestEmulator,
} from '../../../support/cloudflare/emulator.ts';

/** The official SDK against the emulator; its traffic is checked against the contract. */
let cloudflare: TestEmulator;
let sdk: Cloudflare;
let zone: { zone_id: string };
let account: { account_id: string };
beforeEach(async () => {
  cloudflare = await startEmulator({ limits: { ...REAL_LIMITS, routes: 1 } });
  sdk = new Cloudflare({ apiToken: EMULATOR_TOKEN, baseURL: cloudflare.url, maxRetries: 0 });
  zone = { zone_id: cloudflare.zone.id };
  account = { account_id: cloudflare.account };
});
afterEach(() => cloudflare.close());

const code = (error: unknown) => (error instanceof Cloudflare.APIError ? error.errors[0]?.code : error);

test('reads all pages of the records, and writes them in batches', async () => {
  const posts = Array.from({ length: 45 }, (_, index) => ({
    type: 'A' as const,
    name: `h${index}.example.net`,
    content: `192.0.2.${index}`,
    ttl: 300,
  }));
  const batch = await sdk.dns.records.batch({ ...zone, posts });
  expect(batch.posts).toHaveLength(45);
  const names: string[] = [];
  for await (const { name } of sdk.dns.records.list({ ...zone, per_page: 20 })) names.push(name);
  expect(new Set(names)).toEqual(new Set(posts.map(({ name }) => name)));
  const deletes = batch.posts?.map(({ id }) => ({ id })) ?? [];
  await sdk.dns.records.batch({ ...zone, deletes });
  expect((await sdk.dns.records.list(zone)).result).toEqual([]);
});

test('gets the API’s errors with their status and code', async () => {
  const record = {
    ...zone,
    type: 'A' as const,
    name: 'a.example.net',
    content: '192.0.2.1',
    ttl: 1 as const,
  };
  await sdk.dns.records.create(record);
  const twice = await sdk.dns.records.create(record).catch((error: unknown) => error);
  expect(twice).toBeInstanceOf(Cloudflare.BadRequestError);
  expect(code(twice)).toBe(81058);
  const lost = await sdk.dns.records.delete('0'.repeat(32), zone).catch((error: unknown) => error);
  expect(lost).toBeInstanceOf(Cloudflare.NotFoundError);
  const stranger = sdk.withOptions({ apiToken: 'wrong' });
  expect(await stranger.zones.get(zone).catch((error: unknown) => error)).toBeInstanceOf(
    Cloudflare.AuthenticationError,
  );
});

test('retries a conflict as at Cloudflare, unless retries are off, and reports a full zone', async () => {
  const retrying = sdk.withOptions({ maxRetries: 1 });
  const route = { ...zone, pattern: 'a.example.net/*', script: EMULATOR_SCRIPT };
  await sdk.workers.routes.create(route);
  cloudflare.calls.length = 0;
  expect(await sdk.workers.routes.create(route).catch(code)).toBe(10020);
  expect(cloudflare.calls).toHaveLength(1);
  expect(await retrying.workers.routes.create(route).catch(code)).toBe(10020);
  expect(cloudflare.calls).toHaveLength(3);
  expect(await sdk.workers.routes.create({ ...route, pattern: 'b.example.net/*' }).catch(code)).toBe(10073);
});

test('waits as long as the emulator says in retry-after', async () => {
  await cloudflare.close();
  const calls = { calls: 2, seconds: 1 };
  cloudflare = await startEmulator({ limits: { ...REAL_LIMITS, calls } });
  const limited = new Cloudflare({ apiToken: EMULATOR_TOKEN, baseURL: cloudflare.url, maxRetries: 0 });
  for (let index = 0; index < 2; index += 1) await limited.zones.get({ zone_id: cloudflare.zone.id });
  const refused = await limited.zones.get({ zone_id: cloudflare.zone.id }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(Cloudflare.RateLimitError);
  expect(code(refused)).toBe(10500);
  const waiting = limited.withOptions({ maxRetries: 1 });
  expect((await waiting.zones.get({ zone_id: cloudflare.zone.id })).name).toBe('example.net');
});

test('keeps values in KV, one by one and in bulk', async () => {
  const { id } = await sdk.kv.namespaces.create({ ...account, title: 'of-the-sdk' });
  const at = { ...account, namespace_id: id };
  await sdk.kv.namespaces.values.update('a/b', { ...at, value: 'text', metadata: '{"m":1}' });
  const value = await sdk.kv.namespaces.values.get('a/b', at);
  expect(await value.text()).toBe('text');
  const body = ['x', 'y'].map((key) => ({ key, value: 'v' }));
  const written = await sdk.kv.namespaces.bulkUpdate(id, { ...account, body });
  expect(written).toMatchObject({ successful_key_count: 2, unsuccessful_keys: [] });
  const again = await sdk.kv.namespaces.bulkUpdate(id, { ...account, body });
  expect(again?.unsuccessful_keys).toEqual(['x', 'y']);
  const names: string[] = [];
  for await (const { name } of sdk.kv.namespaces.keys.list(id, account)) names.push(name);
  expect(names).toEqual(['a/b', 'x', 'y']);
  const titles: string[] = [];
  for await (const { title } of sdk.kv.namespaces.list({ ...account, per_page: 5 })) titles.push(title);
  expect(titles).toContain('of-the-sdk');
  await sdk.kv.namespaces.delete(id, account);
  expect(await sdk.kv.namespaces.keys.list(id, account).catch(code)).toBe(10009);
});

test('uploads a worker, reads and changes its settings, and rolls back to an earlier version', async () => {
  const name = 'of-the-sdk';
  // The SDK's own `update` sends a form with the content type of a script.
  const upload = async (text: string) => {
    const metadata = {
      main_module: 'worker.js',
      compatibility_date: '2026-01-01',
      bindings: [
        { type: 'plain_text', name: 'PLAIN', text },
        { type: 'secret_text', name: 'SECRET', text: 'hidden' },
      ],
    };
    const body = new FormData();
    body.set('metadata', JSON.stringify(metadata));
    const type = 'application/javascript+module';
    body.set('worker.js', await toFile(Buffer.from('export default {}'), 'worker.js', { type }));
    await sdk.put(`/accounts/${account.account_id}/workers/scripts/${name}`, { body });
  };
  await upload('one');
  await upload('two');
  const settings = await sdk.workers.scripts.scriptAndVersionSettings.get(name, account);
  expect(settings.bindings).toEqual([
    { name: 'PLAIN', type: 'plain_text', text: 'two' },
    { name: 'SECRET', type: 'secret_text' },
  ]);
  await sdk.workers.scripts.settings.edit(name, { ...account, logpush: true });
  expect((await sdk.workers.scripts.settings.get(name, account)).logpush).toBe(true);

  const { result } = await sdk.workers.scripts.versions.list(name, account);
  const [, earlier] = result.items ?? [];
  const versions = [{ version_id: String(earlier?.id), percentage: 100 }];
  await sdk.workers.scripts.deployments.create(name, { ...account, strategy: 'percentage', versions });
  const listed = await sdk.workers.scripts.deployments.list(name, account);
  expect(listed.result).toMatchObject({ deployments: [{ versions }, {}, {}] });
  const wrong = [{ version_id: String(earlier?.id), percentage: 90 }];
  const refused = sdk.workers.scripts.deployments.create(name, {
    ...account,
    strategy: 'percentage',
    versions: wrong,
  });
  expect(await refused.catch(code)).toBe(10210);

  // A change by the other settings endpoint keeps what it omits.
  const body = new FormData();
  body.set('settings', JSON.stringify({ compatibility_date: '2026-02-01' }));
  await sdk.patch(`/accounts/${account.account_id}/workers/scripts/${name}/settings`, { body });
  const { compatibility_date: date } = await sdk.workers.scripts.scriptAndVersionSettings.get(name, account);
  const { logpush } = await sdk.workers.scripts.settings.get(name, account);
  expect([date, logpush]).toEqual(['2026-02-01', true]);
  // A refused change changes nothing.
  const wrongBody = new FormData();
  const inherit = { type: 'inherit', name: 'MISSING' };
  wrongBody.set('settings', JSON.stringify({ logpush: false, bindings: [inherit] }));
  const path = `/accounts/${account.account_id}/workers/scripts/${name}/settings`;
  expect(await sdk.patch(path, { body: wrongBody }).catch(code)).toEqual(expect.any(Number));
  expect((await sdk.workers.scripts.settings.get(name, account)).logpush).toBe(true);

  const names: unknown[] = [];
  for await (const { id } of sdk.workers.scripts.list(account)) names.push(id);
  expect(names).toEqual(['of-the-sdk', EMULATOR_SCRIPT]);
  await sdk.workers.scripts.delete(name, account);
  expect(await sdk.workers.scripts.settings.get(name, account).catch(code)).toBe(10007);
});

test('puts a worker on a hostname of its own', async () => {
  const domain = { ...account, hostname: 'own.example.net', service: EMULATOR_SCRIPT, zone_id: zone.zone_id };
  const { id } = await sdk.workers.domains.update(domain);
  expect(cloudflare.routes.at(-1)).toEqual(['own.example.net/*']);
  expect((await sdk.workers.domains.list(account)).result).toMatchObject([{ hostname: 'own.example.net' }]);
  await sdk.workers.domains.delete(String(id), account);
  expect(cloudflare.routes.at(-1)).toEqual([]);
});
