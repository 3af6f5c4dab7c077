import { describe, expect, test } from 'vitest';
import type { EmulatedRecord } from '../../../../../sites/local/cloudflare/dns/record.ts';
import {
  absoluteName,
  refuseConflict,
  refuseInvalid,
} from '../../../../../sites/local/cloudflare/dns/rules.ts';

const record = (change: Partial<EmulatedRecord> = {}): EmulatedRecord => ({
  id: 'id',
  zone_id: 'zone',
  zone_name: 'example.net',
  type: 'A',
  name: 'shop.example.net',
  content: '192.0.2.1',
  ttl: 1,
  proxied: false,
  proxiable: true,
  tags: [],
  meta: {},
  settings: {},
  created_on: '2026-11-21T00:00:00Z',
  modified_on: '2026-11-21T00:00:00Z',
  ...change,
});

describe('a DNS record’s name', () => {
  test.each([
    ['shop', 'shop.example.net'],
    ['Shop.Example.NET', 'shop.example.net'],
    ['shop.example.net.', 'shop.example.net'],
    ['@', 'example.net'],
    ['example.net', 'example.net'],
    ['notexample.net', 'notexample.net.example.net'],
  ])('%s is completed to %s', (name, absolute) => {
    expect(absoluteName(name, 'example.net')).toBe(absolute);
  });
});

describe('a DNS record on its own', () => {
  test.each<[string, Partial<EmulatedRecord>]>([
    ['an IPv4 address', {}],
    ['an IPv6 address', { type: 'AAAA', content: '2001:db8::1' }],
    ['a wildcard', { name: '*.shop.example.net' }],
    ['an underscore', { name: '_acme-challenge.example.net', type: 'TXT', content: 'x' }],
    ['the shortest TTL', { ttl: 60 }],
    ['the longest TTL', { ttl: 86_400 }],
    ['a comment of 100 characters', { comment: 'x'.repeat(100) }],
  ])('is valid with %s', (_name, change) => {
    expect(() => refuseInvalid(record(change))).not.toThrow();
  });

  test.each<[string, Partial<EmulatedRecord>, string]>([
    ['an IPv6 address in an A record', { content: '2001:db8::1' }, 'valid IPv4'],
    ['an IPv4 address in an AAAA record', { type: 'AAAA' }, 'valid IPv6'],
    ['a name longer than 253 characters', { name: `${'a.'.repeat(126)}example.net` }, 'Validation'],
    ['a label that begins with a dash', { name: '-a.example.net' }, 'Validation'],
    ['a label longer than 63 characters', { name: `${'a'.repeat(64)}.example.net` }, 'Validation'],
    ['a TTL below the limit', { ttl: 59 }, 'Validation'],
    ['a TTL above the limit', { ttl: 86_401 }, 'Validation'],
    ['a proxied type that can’t be proxied', { proxied: true, proxiable: false }, 'Validation'],
    ['a comment of 101 characters', { comment: 'x'.repeat(101) }, 'Validation'],
    ['a comment of two lines', { comment: 'a\nb' }, 'Validation'],
  ])('is refused with %s', (_name, change, message) => {
    expect(() => refuseInvalid(record(change))).toThrow(message);
  });
});

describe('a DNS record beside others of its name', () => {
  const alias = record({ type: 'CNAME', content: 'other.example' });
  const text = record({ type: 'TXT', content: 'x', proxiable: false });
  const address = record();
  const ipv6 = record({ type: 'AAAA', content: '2001:db8::1' });

  test.each<[string, EmulatedRecord, EmulatedRecord[]]>([
    ['an address beside another address', record({ content: '192.0.2.2' }), [address]],
    ['an IPv6 address beside an IPv4 address', ipv6, [address]],
    ['a text beside an alias', text, [alias]],
    ['an alias beside a text', alias, [text]],
  ])('is allowed: %s', (_name, added, existing) => {
    expect(() => refuseConflict(added, existing)).not.toThrow();
  });

  test.each<[string, EmulatedRecord, EmulatedRecord[], string]>([
    ['an identical record', address, [address], 'identical'],
    ['a second alias', record({ type: 'CNAME', content: 'third.example' }), [alias], 'already exists'],
    ['an alias beside an address', alias, [address], 'with that host'],
    ['an alias beside an IPv6 address', alias, [text, ipv6], 'with that host'],
    ['an address beside an alias', address, [alias], 'with that host'],
  ])('is refused: %s', (_name, added, existing, message) => {
    expect(() => refuseConflict(added, existing)).toThrow(message);
  });
});
