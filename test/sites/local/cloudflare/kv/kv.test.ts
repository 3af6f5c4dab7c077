import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startEmulator, type TestEmulator } from '../../../../support/cloudflare/emulator.ts';

describe('the emulator’s KV', () => {
  let cloudflare: TestEmulator;
  let base: string;
  let time = Date.parse('2026-01-01T00:00:00Z');
  beforeEach(async () => {
    cloudflare = await startEmulator({ now: () => new Date(time) });
    base = `/accounts/${cloudflare.account}/storage/kv/namespaces/${cloudflare.namespaces.get('ROUTES')?.id}`;
  });
  afterEach(() => cloudflare.close());

  const call = (method: string, path: string, body?: unknown, headers?: Record<string, string>) =>
    cloudflare.call(method, `${base}${path}`, body, headers);
  const octets = { 'content-type': 'application/octet-stream' };

  test('lists and creates namespaces', async () => {
    const path = `/accounts/${cloudflare.account}/storage/kv/namespaces`;
    const { json } = await cloudflare.call('GET', path);
    expect(json.result_info).toMatchObject({ total_count: 4 });
    expect((await cloudflare.call('POST', path, { title: 'extra' })).json.result).toMatchObject({
      title: 'extra',
    });
    expect((await cloudflare.call('POST', path, { title: 'extra' })).json.errors[0].code).toBe(10014);
    expect((await cloudflare.call('GET', `${path}/${'0'.repeat(32)}/keys`)).json.errors[0].code).toBe(10009);
  });

  test('puts, gets and deletes a value under any key', async () => {
    const key = encodeURIComponent(`a/b c?ü${'x'.repeat(200)}`);
    expect((await call('PUT', `/values/${key}`, 'text', octets)).status).toBe(200);
    const read = await call('GET', `/values/${key}`);
    expect(read.text).toBe('text');
    time += 1000;
    expect((await call('DELETE', `/values/${key}`)).status).toBe(200);
    expect((await call('GET', `/values/${key}`)).json.errors[0].code).toBe(10009);
  });

  test('takes value and metadata as a form', async () => {
    const form = new FormData();
    form.set('value', 'text');
    form.set('metadata', '{"mark":"m"}');
    const response = await fetch(`${cloudflare.url}${base}/values/shop`, {
      method: 'PUT',
      headers: { authorization: 'Bearer emulator-token' },
      body: form,
    });
    expect(response.status).toBe(200);
    expect((await call('GET', '/values/shop')).text).toBe('text');
    expect((await call('GET', '/metadata/shop')).json.result).toEqual({ mark: 'm' });
    expect((await call('GET', '/metadata/sho')).json.errors[0].code).toBe(10009);
  });

  test('writes, reads and deletes in bulk', async () => {
    const pairs = [
      { key: 'a', value: '{"n":1}', metadata: { mark: 'm' } },
      { key: 'b', value: Buffer.from('two').toString('base64'), base64: true },
    ];
    const written = await call('PUT', '/bulk', pairs);
    expect(written.json.result).toEqual({ successful_key_count: 2, unsuccessful_keys: [] });
    const read = await call('POST', '/bulk/get', { keys: ['a', 'b', 'c'] });
    expect(read.json.result.values).toEqual({ a: '{"n":1}', b: 'two', c: null });
    const detailed = await call('POST', '/bulk/get', { keys: ['a'], type: 'json', withMetadata: true });
    expect(detailed.json.result.values).toEqual({ a: { value: { n: 1 }, metadata: { mark: 'm' } } });
    time += 1000;
    expect((await call('POST', '/bulk/delete', ['a', 'never'])).json.result.successful_key_count).toBe(2);
    expect((await call('GET', '/keys')).json.result).toEqual([{ name: 'b' }]);
  });

  test('refuses a second write of a key within a second, and names such keys of a bulk call (docs/facts.md, Cloudflare Workers)', async () => {
    await call('PUT', '/values/a', 'one', octets);
    const refused = await call('PUT', '/values/a', 'two', octets);
    expect(refused).toMatchObject({ status: 429, json: { success: false } });
    expect((await call('DELETE', '/values/a')).status).toBe(429);
    const written = await call('PUT', '/bulk', [
      { key: 'a', value: 'two' },
      { key: 'b', value: 'two' },
    ]);
    expect(written.json.result).toEqual({ successful_key_count: 1, unsuccessful_keys: ['a'] });
    const deleted = await call('POST', '/bulk/delete', ['a', 'b', 'c']);
    expect(deleted.json.result).toEqual({ successful_key_count: 1, unsuccessful_keys: ['a', 'b'] });
    expect((await call('GET', '/values/a')).text).toBe('one');

    time += 999;
    expect((await call('PUT', '/values/a', 'two', octets)).status).toBe(429);
    time += 1;
    expect((await call('PUT', '/values/a', 'two', octets)).status).toBe(200);
    expect((await call('GET', '/values/a')).text).toBe('two');
  });

  test('writes a key that occurs twice in a bulk call only once, with its last value', async () => {
    const pairs = ['one', 'two'].map((value) => ({ key: 'a', value }));
    expect((await call('PUT', '/bulk', pairs)).json.result.unsuccessful_keys).toEqual([]);
    expect((await call('GET', '/values/a')).text).toBe('two');
  });

  test.each([
    ['an empty key', [{ key: '', value: 'v' }]],
    ['a key of dots', [{ key: '..', value: 'v' }]],
    ['a key of 513 bytes', [{ key: 'k'.repeat(513), value: 'v' }]],
    ['metadata over 1,024 bytes', [{ key: 'k', value: 'v', metadata: { m: 'x'.repeat(1024) } }]],
    ['an expiry below a minute', [{ key: 'k', value: 'v', expiration_ttl: 59 }]],
    [
      'more than 10,000 pairs',
      Array.from({ length: 10_001 }, (_, index) => ({ key: `${index}`, value: 'v' })),
    ],
  ])('refuses a bulk call with %s, and writes nothing of it', async (_name, pairs) => {
    expect((await call('PUT', '/bulk', [{ key: 'fine', value: 'v' }, ...pairs])).status).toBe(400);
    expect((await call('GET', '/keys')).json.result).toEqual([]);
  });

  test('lists keys with their metadata, by prefix and cursor', async () => {
    const pairs = Array.from({ length: 25 }, (_, index) => ({
      key: `p${String(index).padStart(2, '0')}`,
      value: 'v',
      metadata: { index },
    }));
    await call('PUT', '/bulk', [...pairs, { key: 'q', value: 'v' }]);
    const names: string[] = [];
    let cursor = '';
    do {
      const { json } = await call('GET', `/keys?limit=10&prefix=p${cursor && `&cursor=${cursor}`}`);
      names.push(...json.result.map(({ name }: { name: string }) => name));
      expect(json.result_info.count).toBe(json.result.length);
      cursor = json.result_info.cursor;
    } while (cursor !== '');
    expect(names).toEqual(pairs.map(({ key }) => key));
    expect((await call('GET', '/keys?prefix=p03')).json.result).toEqual([
      { name: 'p03', metadata: { index: 3 } },
    ]);
  });

  test('removes a key when it expires', async () => {
    await call('PUT', '/values/short?expiration_ttl=60', 'text', octets);
    time += 59_000;
    expect((await call('GET', '/values/short')).text).toBe('text');
    time += 1_000;
    expect((await call('GET', '/values/short')).status).toBe(404);
    expect((await call('GET', '/keys')).json.result).toEqual([]);
  });
});
