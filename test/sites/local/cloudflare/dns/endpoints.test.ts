import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { REAL_LIMITS } from '../../../../../sites/local/cloudflare/api/limits.ts';
import { startEmulator, type TestEmulator } from '../../../../support/cloudflare/emulator.ts';

describe('the emulator’s DNS API', () => {
  let cloudflare: TestEmulator;
  let records: string;
  beforeEach(async () => {
    cloudflare = await startEmulator({ limits: { ...REAL_LIMITS, records: 201 } });
    records = `/zones/${cloudflare.zone.id}/dns_records`;
  });
  afterEach(() => cloudflare.close());

  const create = (body: object) => cloudflare.call('POST', records, body);
  const list = async (query = '') => (await cloudflare.call('GET', `${records}${query}`)).json;
  const codes = (json: { errors: { code: number }[] }) => json.errors.map(({ code }) => code);

  test('creates, reads, replaces, patches and deletes a record', async () => {
    const created = await create({
      type: 'A',
      name: 'shop',
      content: '192.0.2.1',
      ttl: 300,
      comment: 'mine',
    });
    expect(created).toMatchObject({
      status: 200,
      json: {
        result: { name: 'shop.example.net', ttl: 300, proxied: false, proxiable: true, comment: 'mine' },
      },
    });
    const one = `${records}/${created.json.result.id}`;

    const patched = await cloudflare.call('PATCH', one, { content: '192.0.2.2' });
    expect(patched.json.result).toMatchObject({ content: '192.0.2.2', ttl: 300, comment: 'mine' });

    const replaced = await cloudflare.call('PUT', one, {
      type: 'A',
      name: 'shop.example.net',
      content: '192.0.2.3',
    });
    expect(replaced.json.result).toMatchObject({ content: '192.0.2.3', ttl: 1 });
    expect(replaced.json.result).not.toHaveProperty('comment');
    expect((await cloudflare.call('GET', one)).json.result).toEqual(replaced.json.result);

    expect((await cloudflare.call('DELETE', one)).json.result).toEqual({ id: created.json.result.id });
    expect(await cloudflare.call('DELETE', one)).toMatchObject({
      status: 404,
      json: { errors: [{ code: 81044 }] },
    });
  });

  test.each([
    ['a bad IPv4 address', { type: 'A', name: 'x', content: '999.1.1.1' }, 9005],
    ['a bad IPv6 address', { type: 'AAAA', name: 'x', content: '192.0.2.1' }, 9005],
    ['a TTL that is too short', { type: 'A', name: 'x', content: '192.0.2.1', ttl: 30 }, 1004],
    ['an unknown type', { type: 'NOPE', name: 'x', content: '192.0.2.1' }, 1004],
    ['a name with a space', { type: 'A', name: 'a b', content: '192.0.2.1' }, 1004],
    ['a comment of two lines', { type: 'A', name: 'x', content: '192.0.2.1', comment: 'a\nb' }, 1004],
    [
      'a comment that is too long',
      { type: 'A', name: 'x', content: '192.0.2.1', comment: 'a'.repeat(101) },
      1004,
    ],
    ['a proxied TXT', { type: 'TXT', name: 'x', content: 'text', proxied: true }, 1004],
    ['an identical record', { type: 'A', name: 'taken', content: '192.0.2.1' }, 81058],
    ['an alias beside an address', { type: 'CNAME', name: 'taken', content: 'other.example' }, 81053],
    ['an address beside an alias', { type: 'A', name: 'alias', content: '192.0.2.1' }, 81053],
    ['a second alias', { type: 'CNAME', name: 'alias', content: 'third.example' }, 81057],
  ])('refuses %s', async (_name, record, code) => {
    await create({ type: 'A', name: 'taken', content: '192.0.2.1' });
    await create({ type: 'CNAME', name: 'alias', content: 'other.example' });
    const refused = await create(record);
    expect(refused.status).toBe(400);
    expect(codes(refused.json)).toEqual([code]);
    expect((await list()).result).toHaveLength(2);
  });

  test('allows several addresses for one name', async () => {
    await create({ type: 'A', name: 'many', content: '192.0.2.1' });
    expect((await create({ type: 'A', name: 'many', content: '192.0.2.2' })).status).toBe(200);
  });

  test('gives a proxied record the automatic TTL', async () => {
    const { json } = await create({ type: 'AAAA', name: 'edge', content: '100::', proxied: true, ttl: 300 });
    expect(json.result).toMatchObject({ proxied: true, ttl: 1 });
  });

  test('lists records by page and by filter', async () => {
    for (let host = 1; host <= 5; host += 1) {
      await create({
        type: 'A',
        name: `h${host}`,
        content: `192.0.2.${host}`,
        comment: host > 3 ? 'Late' : 'early',
      });
    }
    const first = await list('?per_page=2&page=1&order=name');
    expect(first.result.map(({ name }: { name: string }) => name)).toEqual([
      'h1.example.net',
      'h2.example.net',
    ]);
    expect(first.result_info).toEqual({ page: 1, per_page: 2, count: 2, total_count: 5, total_pages: 3 });
    expect((await list('?per_page=2&page=3')).result).toHaveLength(1);
    expect((await list('?per_page=2&page=4')).result).toEqual([]);
    expect((await list('?comment.startswith=late')).result).toHaveLength(2);
    expect((await list('?name=h1.example.net&type=A')).result).toHaveLength(1);
    expect((await list('?name=h1.example.net&type=AAAA')).result).toEqual([]);
    expect((await list('?name=h1.example.net&content=192.0.2.2&match=any')).result).toHaveLength(2);
  });

  describe('a batch', () => {
    test('deletes before it patches, puts and posts, so one batch can replace a record', async () => {
      const old = (await create({ type: 'CNAME', name: 'shop', content: 'old.example' })).json.result;
      const other = (await create({ type: 'A', name: 'other', content: '192.0.2.1' })).json.result;
      const { status, json } = await cloudflare.call('POST', `${records}/batch`, {
        posts: [{ type: 'A', name: 'shop', content: '192.0.2.9' }],
        puts: [{ id: other.id, type: 'A', name: 'other', content: '192.0.2.2' }],
        patches: [{ id: other.id, comment: 'patched' }],
        deletes: [{ id: old.id }],
      });
      expect(status).toBe(200);
      expect(json.result.deletes).toMatchObject([{ id: old.id }]);
      // The put came after the patch and set defaults.
      expect(json.result.puts[0]).not.toHaveProperty('comment');
      expect((await list()).result).toHaveLength(2);
    });

    test('does all or nothing', async () => {
      const kept = (await create({ type: 'A', name: 'kept', content: '192.0.2.1' })).json.result;
      const { status, json } = await cloudflare.call('POST', `${records}/batch`, {
        deletes: [{ id: kept.id }],
        posts: [
          { type: 'A', name: 'good', content: '192.0.2.2' },
          { type: 'A', name: 'bad', content: 'not an address' },
        ],
      });
      expect(status).toBe(400);
      expect(codes(json)).toEqual([9005]);
      expect((await list()).result).toEqual([kept]);
    });

    test('takes 200 operations and no more', async () => {
      const posts = Array.from({ length: 201 }, (_, index) => ({
        type: 'TXT',
        name: `t${index}`,
        content: `"${index}"`,
      }));
      expect((await cloudflare.call('POST', `${records}/batch`, { posts })).status).toBe(400);
      expect((await cloudflare.call('POST', `${records}/batch`, { posts: posts.slice(1) })).status).toBe(200);
      expect((await list('?per_page=5000')).result_info.total_count).toBe(200);
    });

    test('beyond the zone’s limit is refused as a whole, with the same code as a single record', async () => {
      const text = (index: number) => ({ type: 'TXT', name: `t${index}`, content: `"${index}"` });
      const posts = Array.from({ length: 200 }, (_, index) => text(index));
      const batch = (body: object) => cloudflare.call('POST', `${records}/batch`, body);
      const [first] = (await batch({ posts })).json.result.posts;
      const over = await batch({ posts: [text(200), text(201)] });
      expect([over.status, codes(over.json)]).toEqual([400, [81045]]);
      expect((await list()).result_info.total_count).toBe(200);
      expect((await create(text(200))).status).toBe(200);
      const alone = await create(text(201));
      expect([alone.status, codes(alone.json)]).toEqual([400, [81045]]);
      // A batch deletes first, which makes room.
      expect((await batch({ deletes: [{ id: first.id }], posts: [text(201)] })).status).toBe(200);
    });
  });
});
