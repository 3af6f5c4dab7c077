import { describe, expect, test } from 'vitest';
import { canonicalJson } from '../../base/canonical-json.ts';
import { contentHash, formatMark, hash16, readMark } from '../../base/ownership.ts';

const identity = { instance: 'main', host: 'tag-1' };
const mark = (instance: string, host: string) => `tgy1 ${instance} ${host} shop 00112233`;

describe('a mark', () => {
  test('is read back as what it was made of, with a shorter hash, and fits a DNS comment', () => {
    const longest = { instance: 'i'.repeat(10), host: 'h'.repeat(24) };
    const text = formatMark(longest, 's'.repeat(48), '0011223344556677');
    expect(text.length).toBeLessThanOrEqual(100);
    expect(readMark(longest, text)).toEqual({
      owner: { kind: 'ours', site: 's'.repeat(48), host: longest.host },
      hash: '00112233',
    });
  });

  test.each([
    ['of this host', mark('main', 'tag-1'), { kind: 'ours', site: 'shop', host: 'tag-1' }, '00112233'],
    [
      'with spaces around it',
      ` ${mark('main', 'tag-1')}\n`,
      { kind: 'ours', site: 'shop', host: 'tag-1' },
      '00112233',
    ],
    [
      'of another host',
      mark('main', 'tag-2'),
      { kind: 'foreign', by: 'Tagyard instance main on host tag-2', site: 'shop' },
      null,
    ],
    [
      'of another instance',
      mark('other', 'tag-1'),
      { kind: 'foreign', by: 'Tagyard instance other on host tag-1' },
      null,
    ],
    [
      'of another format',
      'tgy2 main tag-1 shop 00112233',
      { kind: 'foreign', by: '"tgy2 main tag-1 shop 00112233"' },
      null,
    ],
    [
      'followed by a text',
      `${mark('main', 'tag-1')} x`,
      { kind: 'foreign', by: `"${mark('main', 'tag-1')} x"` },
      null,
    ],
    ['replaced by a long text', 'x'.repeat(200), { kind: 'foreign', by: `"${'x'.repeat(100)}"` }, null],
    ['that is missing', undefined, { kind: 'foreign', by: 'an unknown owner (no mark)' }, null],
    ['that is empty', '', { kind: 'foreign', by: 'an unknown owner (no mark)' }, null],
  ])('%s is read as $2', (_what, text, owner, hash) => {
    expect(readMark(identity, text)).toEqual({ owner, hash });
  });
});

test('equal data has an equal hash, whatever the order of its keys', () => {
  const data = { b: [{ d: 1, c: undefined }, null], a: 'x' };
  expect(canonicalJson(data)).toBe('{"a":"x","b":[{"d":1},null]}');
  expect(contentHash(data)).toBe(contentHash({ a: 'x', b: [{ d: 1 }, null] }));
  expect(contentHash(data)).not.toBe(contentHash({ a: 'x', b: [null, { d: 1 }] }));
});

test('a hash is the first 16 hex digits of SHA-256', () => {
  // Source: FIPS 180-2, appendix B.1, "abc".
  expect(hash16('abc')).toBe('ba7816bf8f01cfea');
});
