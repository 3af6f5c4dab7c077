import { describe, expect, test } from 'vitest';
import { type Hop, hostnameOf, isUnder, publicOrigin, publicUrl } from '../../../edge/http/public-url.ts';

const hop = (forwardedHost: string | null, forwardedProto: Hop['forwardedProto'] = null): Hop => ({
  address: null,
  place: { country: null, region: null },
  forwardedHost,
  forwardedProto,
  isTrusted: false,
});
const requested = new URL('http://shop.edge.test/boot?x=1');

describe('publicUrl', () => {
  test.each([
    ['a request without a proxy', hop(null), 'http://shop.edge.test/boot?x=1'],
    ['a host of the site', hop('m.acme.example', 'https'), 'https://m.acme.example/boot?x=1'],
    [
      'a host of the site, with a port',
      hop('m.acme.example:8443', 'https'),
      'https://m.acme.example:8443/boot?x=1',
    ],
    ['the site’s own domain', hop('acme.example'), 'http://acme.example/boot?x=1'],
    [
      'a foreign host, with the scheme https',
      hop('evil.example', 'https'),
      'https://shop.edge.test/boot?x=1',
    ],
    [
      'a foreign host that ends like a domain of the site',
      hop('evilacme.example'),
      'http://shop.edge.test/boot?x=1',
    ],
    ['a scheme without a host', hop(null, 'https'), 'https://shop.edge.test/boot?x=1'],
  ])('of %s is $2', (_name, given, expected) => {
    const origin = publicOrigin(requested, given, ['acme.example']);
    expect(publicUrl(requested, origin).href).toBe(expected);
  });
});

test.each([
  'http://shop.edge.test',
  'https://shop.edge.test:8443',
  'https://127.0.0.1:8443',
  'https://[2001:db8::7]',
  'http://[2001:db8::7]:8080',
])('hostnameOf of %s is the hostname of its URL', (origin) => {
  expect(new URL(origin).origin).toBe(origin);
  expect(hostnameOf(origin)).toBe(new URL(origin).hostname);
});

describe('isUnder', () => {
  test.each([
    ['acme.example', true],
    ['www.acme.example', true],
    ['evilacme.example', false],
    ['acme.example.evil', false],
    ['example', false],
    ['', false],
  ])('%s is under acme.example: %s', (host, expected) => {
    expect(isUnder(host, 'acme.example')).toBe(expected);
  });
});
