import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EMULATOR_SCRIPT, startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { buildInventory } from './inventory.ts';

const PREFIX = 'tagyard-conform-0a1b2c3d';
type Call = [method: string, path: string, body?: unknown];
const own = `shop.${PREFIX}.example.net`;

describe('the inventory of a zone', () => {
  let cloudflare: TestEmulator;
  let inventory: ReturnType<typeof buildInventory>;
  let records: string;
  let routes: string;
  beforeEach(async () => {
    cloudflare = await startEmulator();
    const { zone, account } = cloudflare;
    records = `/zones/${zone.id}/dns_records`;
    routes = `/zones/${zone.id}/workers/routes`;
    inventory = buildInventory({
      call: (method, path) => cloudflare.call(method, path),
      place: { zone: zone.id, account },
      prefix: PREFIX,
    });
  });
  afterEach(() => cloudflare.close());

  const record = (name: string) => ({ type: 'A', name, content: '192.0.2.1' });
  const objection = (...[method, path, body = '']: Call) =>
    inventory.objection(method, path, typeof body === 'string' ? body : JSON.stringify(body));
  const create = async (path: string, body: object): Promise<string> =>
    (await cloudflare.call('POST', path, body)).json.result.id;

  test('allows calls that only read, and refuses those that can’t be undone', async () => {
    expect(await objection('GET', `/zones/${cloudflare.zone.id}/settings`)).toBe(null);
    const writes = [
      ['PATCH', `/zones/${cloudflare.zone.id}/settings/ssl`],
      ['DELETE', `/zones/${cloudflare.zone.id}`],
      ['PUT', `/zones/${cloudflare.zone.id}/custom_hostnames/fallback_origin`],
      ['POST', '/user/tokens'],
    ] as const;
    for (const [method, path] of writes) expect(await objection(method, path)).toMatch(/could not undo/);
  });

  test('refuses calls that change what was there before, also in a batch', async () => {
    const id = await create(records, record('shop'));
    const calls: Call[] = [
      ['DELETE', `${records}/${id}`],
      ['PATCH', `${records}/${id}`, { name: own }],
      ['POST', `${records}/batch`, { deletes: [{ id }] }],
    ];
    for (const call of calls) {
      expect(await objection(...call)).toBe(`DNS record ${id} was there before the run`);
    }
    const [namespace] = [...cloudflare.namespaces.values()];
    const value = `/accounts/${cloudflare.account}/storage/kv/namespaces/${namespace?.id}/values/key`;
    expect(await objection('PUT', value, 'text')).toMatch(/^KV namespace .* was there before/);
  });

  test('refuses names without the prefix, also in a batch', async () => {
    const stray = record('www.example.net');
    const calls: Call[] = [
      ['POST', records, stray],
      ['POST', `${records}/batch`, { posts: [record(own), stray] }],
      ['POST', routes, { pattern: '*.example.net/*', script: EMULATOR_SCRIPT }],
      ['PUT', `/accounts/${cloudflare.account}/workers/scripts/shop`],
    ];
    for (const call of calls) {
      expect(await objection(...call)).toMatch(/lacks the run's prefix/);
    }
    expect(await objection('POST', records, record(own))).toBe(null);
    expect(await objection('POST', routes, { pattern: `${own}/*` })).toBe(null);
    expect(await objection('POST', records, '{"type":')).toBe(null);
  });

  test('allows any change of what the run has made', async () => {
    expect(await objection('POST', records, record(own))).toBe(null);
    const { json } = await cloudflare.call('POST', records, record(own));
    inventory.created(json);
    const { id } = json.result;
    expect(await objection('PATCH', `${records}/${id}`, { ttl: 300 })).toBe(null);
    expect(await objection('DELETE', `${records}/${id}`)).toBe(null);
  });

  test('removes what the run has made, also if the answer got lost, and nothing else', async () => {
    const before = await create(records, record('shop'));
    await objection('POST', records, record(own));
    await objection('POST', routes, { pattern: `${own}/*` });
    // Their answers got lost, so the inventory can recognize them only by the prefix.
    await create(records, record(own));
    await create(routes, { pattern: `${own}/*`, script: EMULATOR_SCRIPT });
    // Made by another at the same time.
    const others = await create(records, record('other'));
    expect(await inventory.removeAll()).toEqual({ removed: 2, remains: [] });
    const left = (await cloudflare.call('GET', records)).json.result as { id: string }[];
    expect(left.map(({ id }) => id).sort()).toEqual([before, others].sort());
    expect((await cloudflare.call('GET', routes)).json.result).toEqual([]);
  });

  test('makes no call where the run has changed nothing', async () => {
    expect(await objection('GET', records)).toBe(null);
    expect(await inventory.removeAll()).toEqual({ removed: 0, remains: [] });
    expect(cloudflare.calls).toEqual([]);
  });

  test('says what it could not remove', async () => {
    const refusing = buildInventory({
      call: async (method, path) =>
        method === 'DELETE' ? { status: 403, json: null } : cloudflare.call(method, path),
      place: { zone: cloudflare.zone.id, account: cloudflare.account },
      prefix: PREFIX,
    });
    await refusing.objection('POST', records, JSON.stringify(record(own)));
    const id = await create(records, record(own));
    expect(await refusing.removeAll()).toEqual({ removed: 0, remains: [`DNS record ${own} (${id})`] });
  });
});
