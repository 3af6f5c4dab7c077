import { expect, test } from 'vitest';
import { visitorFinder } from '../../../../gitops/appliers/proxy/visitor-address.ts';

const visitorOf = visitorFinder(() => ({
  cloudflare: ['192.0.2.0/24', '2001:db8::/32'],
  own: ['10.0.0.0/8'],
}));

test.each([
  ['a stranger', '203.0.113.5', { 'cf-connecting-ip': '198.51.100.7' }, '203.0.113.5'],
  ['Cloudflare', '192.0.2.1', { 'cf-connecting-ip': '198.51.100.7' }, '198.51.100.7'],
  ['Cloudflare by IPv6', '2001:db8::1', { 'cf-connecting-ip': '2001:db8:1::7' }, '2001:db8:1::7'],
  ['Cloudflare without the header', '192.0.2.1', { 'x-forwarded-for': '198.51.100.7' }, '192.0.2.1'],
  ['Cloudflare with no address', '192.0.2.1', { 'cf-connecting-ip': 'unknown' }, '192.0.2.1'],
  ['a load balancer', '10.0.0.1', { 'x-forwarded-for': '192.0.2.9, 198.51.100.7' }, '198.51.100.7'],
  [
    'a load balancer, in two headers',
    '10.0.0.1',
    { 'x-forwarded-for': ['192.0.2.9', '198.51.100.7'] },
    '198.51.100.7',
  ],
  ['a load balancer without the header', '10.0.0.1', {}, '10.0.0.1'],
])('the visitor’s address from %s is $3', (_peer, peer, headers, expected) => {
  expect(visitorOf(peer, headers).address).toBe(expected);
});

test.each([
  ['a stranger', '203.0.113.5', 'https', null],
  ['Cloudflare', '192.0.2.1', 'https', 'https'],
  ['Cloudflare, of a visitor without TLS,', '192.0.2.1', 'http', 'http'],
  ['a load balancer', '10.0.0.1', 'https', 'https'],
  ['a load balancer behind another', '10.0.0.1', 'http, https', 'https'],
  ['a load balancer with another word', '10.0.0.1', 'gopher', null],
  ['a load balancer without the header', '10.0.0.1', undefined, null],
])('the scheme from %s is $3', (_peer, peer, proto, expected) => {
  expect(visitorOf(peer, { 'x-forwarded-proto': proto }).scheme).toBe(expected);
});
