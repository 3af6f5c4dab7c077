import { afterEach, beforeEach, expect, test } from 'vitest';
import { zoneResolver } from '../../../../../sites/local/cloudflare/dns/resolver.ts';
import { startEmulator, type TestEmulator } from '../../../../support/cloudflare/emulator.ts';

let cloudflare: TestEmulator;
beforeEach(async () => {
  cloudflare = await startEmulator();
  for (const record of [
    { type: 'A', name: 'origin', content: '127.0.0.1' },
    { type: 'AAAA', name: 'six', content: '::1' },
    { type: 'AAAA', name: 'edge', content: '100::', proxied: true },
    { type: 'CNAME', name: 'alias', content: 'origin.example.net' },
    { type: 'CNAME', name: 'outside', content: 'elsewhere.example' },
    { type: 'CNAME', name: 'loop', content: 'pool.example.net' },
    { type: 'CNAME', name: 'pool', content: 'loop.example.net' },
    { type: 'A', name: 'www', content: '127.0.0.3', proxied: true },
    { type: 'AAAA', name: 'both', content: '100::', proxied: true },
    { type: 'A', name: 'both', content: '127.0.0.4', proxied: true },
    { type: 'A', name: '*.hosts', content: '127.0.0.2' },
    { type: 'TXT', name: 'noted.hosts', content: '"text"' },
    { type: 'TXT', name: 'below.parent.hosts', content: '"text"' },
  ]) {
    await cloudflare.call('POST', `/zones/${cloudflare.zone.id}/dns_records`, record);
  }
});
afterEach(() => cloudflare.close());

test.each([
  ['an address', 'origin.example.net', '127.0.0.1'],
  ['a name in any letter case', 'Origin.Example.NET', '127.0.0.1'],
  ['an IPv6 address', 'six.example.net', '::1'],
  ['an alias', 'alias.example.net', '127.0.0.1'],
  ['the origin of a proxied name', 'www.example.net', '127.0.0.3'],
  ['a name under a wildcard', 'any.hosts.example.net', '127.0.0.2'],
  ['a name two labels under a wildcard', 'at.any.hosts.example.net', '127.0.0.2'],
  ['nothing under a wildcard for a name with another record', 'noted.hosts.example.net', null],
  ['nothing under a wildcard for a name below one with another record', 'at.noted.hosts.example.net', null],
  ['nothing under a wildcard for a name above another name', 'parent.hosts.example.net', null],
  [
    'a name under a wildcard, with `_` where another name has a letter',
    'p_rent.hosts.example.net',
    '127.0.0.2',
  ],
  ['the discard prefix for a proxied name without an origin', 'edge.example.net', '100::'],
  ['the origin of a name that also has the discard prefix', 'both.example.net', '127.0.0.4'],
  ['nothing for an alias to another zone', 'outside.example.net', null],
  ['nothing for a loop', 'loop.example.net', null],
  ['nothing for an unknown name', 'unknown.example.net', null],
])('resolves %s', (_name, host, address) => {
  expect(zoneResolver(cloudflare.db)(host)).toBe(address);
});
