import { domainToASCII } from 'node:url';
import { expect, test } from 'vitest';
import { shownHost, shownHostsIn } from '../../base/host-name.ts';

test.each([
  'acme.example',
  'möbel-groß.example',
  'www.bücher.рф',
  'παράδειγμα.δοκιμή',
  '例え.テスト',
  'مثال.إختبار',
  'доменное-имя.рф',
  '한국.kr',
  'a1-😀.example',
  'ñandú.faß.example',
])('%s is shown in Unicode', (host) => {
  expect(shownHost(domainToASCII(host))).toBe(host);
});

test.each([
  ['Latin and Cyrillic', domainToASCII('аpple.example')],
  ['Latin and Greek', domainToASCII('gοοgle.example')],
  ['an unknown script', domainToASCII('ꮜꮝ.example')],
  ['no Punycode', 'xn--.example'],
  ['a code of nothing', 'xn--99999999999.example'],
  ['another character', 'xn--ü.example'],
  ['a name that is written in ASCII', 'xn--acme-.example'],
])('a label of %s stays as it is', (_what, host) => {
  expect(host).not.toBe('');
  expect(shownHost(host)).toBe(host);
});

test('host names in a text are shown in Unicode', () => {
  const text = 'one: tags.xn--mbel-gro-xya6t.example has no record (xn--99999999999.example)';
  expect(shownHostsIn(text)).toBe('one: tags.möbel-groß.example has no record (xn--99999999999.example)');
});
