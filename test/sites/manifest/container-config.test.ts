import { describe, expect, test } from 'vitest';
import {
  canonicalContainerConfig,
  normaliseContainerConfig,
  parseContainerConfig,
} from '../../../sites/manifest/container-config.ts';

const base64 = (text: string | Buffer) => Buffer.from(text).toString('base64');
/** Its base64 has padding, and digits in which the two alphabets differ. */
const QUERY = 'id=GTM-A&env=1&auth=~~?>>>';
const CANONICAL = base64(QUERY);

test('the sample has padding and digits in which the two alphabets differ', () => {
  expect(CANONICAL).toMatch(/[+/].*=$/);
});

describe('the tag server accepts', () => {
  test.each([
    ['the canonical form', CANONICAL, 'GTM-A'],
    ['further parameters', base64('id=GTM-A&env=1&auth=x&cd=a&cd=b'), 'GTM-A'],
    ['escaped values', base64('id=GTM%2DA&env=1&auth=x'), 'GTM-A'],
  ])('%s', (_what, text, id) => {
    expect(parseContainerConfig(text)).toEqual({ ok: true, text, id });
  });
});

describe('the tag server refuses (docs/facts.md, Container configuration)', () => {
  test.each([
    ['nothing', '', 'is not base64 text'],
    ['plain text', 'id=GTM-A&env=1&auth=x', 'is not base64 text'],
    ['missing padding', CANONICAL.replace(/=+$/, ''), 'is not base64 text'],
    ['the base64url alphabet', CANONICAL.replaceAll('+', '-').replaceAll('/', '_'), 'is not base64 text'],
    ['whitespace', `${CANONICAL}\n`, 'is not base64 text'],
    ['bytes that are not UTF-8', base64(Buffer.from([0xff, 0xfe])), 'is not base64 text'],
    ['no parameters', base64('text'), 'has no id, env, auth'],
    ['a missing parameter', base64('id=GTM-A&env=1'), 'has no auth'],
    ['a leading question mark', base64('?id=GTM-A&env=1&auth=x'), 'has no id'],
    ['a byte order mark', base64('\ufeffid=GTM-A&env=1&auth=x'), 'has no id'],
    ['a parameter twice', base64('id=GTM-A&id=GTM-B&env=1&auth=x'), 'has more than one id'],
    ['an empty parameter', base64('id=GTM-A&env=&auth=x'), 'has an empty env'],
    ['a parameter without a value', base64('id=GTM-A&env=1&auth'), 'has an empty auth'],
  ])('%s', (_what, text, problem) => {
    expect(parseContainerConfig(text)).toEqual({ ok: false, problem });
  });
});

describe('a pasted configuration is brought to the canonical form (docs/facts.md, Container configuration)', () => {
  test.each([
    ['canonical already', CANONICAL],
    ['with whitespace around and in it', `  ${CANONICAL.slice(0, 8)}\r\n${CANONICAL.slice(8)}\n`],
    ['without padding', CANONICAL.replace(/=+$/, '')],
    ['in the base64url alphabet', CANONICAL.replaceAll('+', '-').replaceAll('/', '_')],
    ['in base64url without padding', Buffer.from(QUERY).toString('base64url')],
  ])('%s', (_what, given) => {
    expect(normaliseContainerConfig(given)).toEqual({ ok: true, text: CANONICAL, id: 'GTM-A' });
    expect(canonicalContainerConfig(given)).toEqual({ ok: true, text: CANONICAL, id: 'GTM-A' });
  });

  test.each([
    ['whitespace only', ' \n'],
    ['other characters', `${CANONICAL.slice(0, 4)}*${CANONICAL.slice(4)}`],
    ['a lost last digit', CANONICAL.replace(/=+$/, '').slice(0, -1)],
    ['padding in the middle', `${base64('a')}${CANONICAL}`],
    ['too much padding', `${CANONICAL.replace(/=+$/, '')}===`],
  ])('but not %s', (_what, given) => {
    expect(normaliseContainerConfig(given)).toEqual({ ok: false, problem: 'is not base64 text' });
  });

  test.each([
    [
      'an id that isn’t a container id',
      'id=foo&env=1&auth=x',
      'has a wrong id: it must be a container id like GTM-ABC1234',
    ],
    [
      'a negative environment',
      'id=GTM-A&env=-9&auth=x',
      'has a wrong env: it must be the number of an environment, 1 or more',
    ],
    [
      'an environment that isn’t a number',
      'id=GTM-A&env=live&auth=x',
      'has a wrong env: it must be the number of an environment, 1 or more',
    ],
    [
      'a token with spaces',
      'id=GTM-A&env=1&auth=a%20b',
      'has a wrong auth: it must consist of printable characters without spaces',
    ],
  ])('but not %s, which the image itself accepts', (_what, query, problem) => {
    expect(normaliseContainerConfig(base64(query))).toEqual({ ok: false, problem });
    expect(parseContainerConfig(base64(query))).toMatchObject({ ok: true });
  });
});
