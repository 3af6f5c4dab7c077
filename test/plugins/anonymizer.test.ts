import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cutAddress } from '../../plugins/anonymizer/address.ts';
import { type Stage, startStage } from '../support/edge/stage.ts';

let stage: Stage;
beforeAll(async () => {
  stage = await startStage();
});
afterAll(() => stage.close());

describe('an address', () => {
  test.each([
    ['203.0.113.7', '203.0.113.0'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::'],
    ['2001:db8::7', '2001:db8::'],
    ['2001:DB8:0:0:0:0:0:7', '2001:db8::'],
    ['::1', '::'],
    ['fe80::1:2:3:4', 'fe80::'],
    ['1:2:3::', '1:2:3::'],
    ['::ffff:203.0.113.7', '::'],
    ['::203.0.113.7', '::'],
    ['unknown', null],
    ['203.0.113', '203.0.0.0'],
    ['1:2', null],
    ['', null],
  ])('%s is cut to %s', (address, cut) => {
    expect(cutAddress(address)).toBe(cut);
  });
});

interface Sent {
  readonly query?: string;
  readonly method?: string;
  readonly body?: string | Buffer;
  readonly headers?: Record<string, string>;
}

const hit = async (
  options: object | null,
  { query = '', method = 'POST', body = '', headers = {} }: Sent = {},
) => {
  const site = await stage.site(
    options === null ? {} : { features: { anonymizer: true }, modules: { anonymizer: { ...options } } },
  );
  stage.upstream.received.length = 0;
  const { status } = await stage.send(site.host, `/g/collect${query}`, {
    method,
    headers: { 'cf-connecting-ip': '203.0.113.7', ...headers },
    ...(method === 'GET' ? {} : { body }),
  });
  return { status, arrived: stage.upstream.received[0] };
};
const addressOf = async (options: object | null) => (await hit(options)).arrived?.headers['x-forwarded-for'];

test('the tag server gets the address as the site says', async () => {
  expect(await addressOf(null)).toBe('203.0.113.7');
  expect(await addressOf({})).toBe('203.0.113.0');
  expect(await addressOf({ address: 'none' })).toBeUndefined();
  expect(await addressOf({ address: 'keep' })).toBe('203.0.113.7');
});

const HASH = /^[0-9a-f]{64}$/;
const options = { drop: ['ep.email', 'secret'], hash: ['uid'] };

test('parameters of the query and of each line are dropped and hashed; all others stay as they were', async () => {
  const { arrived } = await hit(options, {
    query: '?v=2&secret=1&%75id=me&dl=https%3a%2F%2Fx%2f&flag',
    body: 'en=a&ep.email=me%40x.example\nen=b&uid=me&x=+1',
  });
  const [v, uid = '', ...rest] = new URL(arrived?.url ?? '').search.slice(1).split('&');
  expect([v, ...rest]).toEqual(['v=2', 'dl=https%3a%2F%2Fx%2f', 'flag']);
  expect(uid.replace('uid=', '')).toMatch(HASH);
  expect(arrived?.body).toBe(`en=a\nen=b&${uid}&x=+1`);
});

test('members of JSON are dropped and hashed at every depth', async () => {
  const { arrived } = await hit(options, {
    body: JSON.stringify({
      secret: { a: 1 },
      items: [{ uid: 7, n: 7, deep: { 'ep.email': 'x', ok: true } }],
      user: { uid: ['me@x.example'] },
    }),
  });
  expect(JSON.parse(arrived?.body ?? '')).toEqual({
    items: [{ uid: expect.stringMatching(HASH), n: 7, deep: { ok: true } }],
    user: { uid: expect.stringMatching(HASH) },
  });
});

test('a hit by GET is changed, too', async () => {
  const { arrived } = await hit(options, { query: '?v=2&secret=1', method: 'GET' });
  expect(new URL(arrived?.url ?? '').search).toBe('?v=2');
});

test('a hit with a compressed body is refused', async () => {
  const answer = await hit(options, { body: 'x', headers: { 'content-encoding': 'gzip' } });
  expect(answer).toEqual({ status: 500, arrived: undefined });
});

test('a hit with a multipart body is refused', async () => {
  const body = '--b\r\ncontent-disposition: form-data; name="secret"\r\n\r\nmine\r\n--b--\r\n';
  const headers = { 'content-type': 'Multipart/form-data; boundary=b' };
  expect(await hit(options, { body, headers })).toEqual({ status: 500, arrived: undefined });
});

test('nothing of a binary body is passed on, but without drop and hash all of it', async () => {
  const body = Buffer.from([0x61, 0x3d, 0xff, 0xfe, 0x00]);
  const refused = await hit(options, { body });
  expect(refused.arrived?.body ?? '').toBe('');
  const passed = await hit({}, { body });
  expect(passed).toMatchObject({ status: 200, arrived: { headers: { 'content-length': '5' } } });
});

test('nothing is passed on of JSON that can’t be parsed', async () => {
  expect((await hit(options, { body: '{"secret":"mine"' })).arrived?.body).toBe('');
});

test('a body that no hop passes on is refused as without the plugin', async () => {
  const { status, arrived } = await hit(options, { body: 'x'.repeat(8 * 1_048_576 + 1) });
  expect(status).toBe(413);
  expect(arrived).toBeUndefined();
});

test('a body of unknown length is given up at the same limit', async () => {
  const { arrived } = await hit(options, {
    body: 'x'.repeat(8 * 1_048_576 + 1),
    headers: { 'transfer-encoding': 'chunked' },
  });
  expect(arrived?.body ?? '').toBe('');
});
