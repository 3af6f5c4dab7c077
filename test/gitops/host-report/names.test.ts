import { describe, expect, test } from 'vitest';
import { type DnsLookup, dnsLookup } from '../../../gitops/clients/dns-lookup.ts';
import { resolveNames } from '../../../gitops/host-report/names.ts';

const SITE = {
  hostnames: { edge: 'shop.edge.example', origin: 'shop-origin.example', preview: 'shop-preview.example' },
  customDomains: ['metrics.shop.example'],
  domains: [],
};

/** DNS by a table: addresses, an alias (`-> name`), or an error. */
const lookupOf = (table: Record<string, string[] | Error | `-> ${string}`>): DnsLookup => ({
  async addresses(name) {
    const entry = table[name] ?? [];
    if (entry instanceof Error) throw entry;
    return typeof entry === 'string' ? await this.addresses(entry.slice(3)) : entry;
  },
  async alias(name) {
    const entry = table[name];
    return typeof entry === 'string' ? entry.slice(3) : null;
  },
});
const resolve = (table: Parameters<typeof lookupOf>[0], edgeTarget?: string) =>
  resolveNames(
    SITE,
    { hostAddresses: ['192.0.2.1'], otherAddresses: ['192.0.2.2'], edgeTarget },
    lookupOf(table),
  );

describe('the names of a site', () => {
  test('each have the addresses that they must resolve to', async () => {
    const names = await resolve({});
    expect(names.map(({ kind, expected }) => [kind, expected])).toEqual([
      ['edge', []],
      ['origin', ['192.0.2.1']],
      ['preview', ['192.0.2.1']],
      ['custom', ['192.0.2.1', '192.0.2.2']],
    ]);
  });

  test('may have any address while the host’s own ones aren’t known, even if other ones are', async () => {
    const names = await resolveNames(
      SITE,
      { hostAddresses: [], otherAddresses: ['192.0.2.2'], edgeTarget: undefined },
      lookupOf({}),
    );
    expect(names.map(({ kind, expected }) => [kind, expected])).toEqual([
      ['edge', []],
      ['origin', []],
      ['preview', []],
      ['custom', []],
    ]);
  });

  test.each([
    ['an address', '192.0.2.7', ['192.0.2.7']],
    ['a name', 'lb.example.', ['192.0.2.8']],
    ['a name with the hostname in it', '{host}.cdn.example', ['192.0.2.9']],
    ['a name that can’t be resolved, which allows any address', 'down.example', []],
  ])('include an edge hostname that must resolve to %s', async (_name, target, expected) => {
    const table = {
      'lb.example': ['192.0.2.8'],
      'shop.edge.example.cdn.example': ['192.0.2.9'],
      'down.example': new Error('ESERVFAIL'),
    };
    expect((await resolve(table, target))[0]?.expected).toEqual(expected);
  });

  test.each<[string, string[] | Error | `-> ${string}`, object]>([
    ['addresses', ['192.0.2.1'], { addresses: ['192.0.2.1'], alias: null, problem: null }],
    ['no record', [], { addresses: [], problem: 'no such name' }],
    ['no answer', new Error('ESERVFAIL'), { addresses: [], alias: null, problem: 'ESERVFAIL' }],
    [
      'an alias of an alias',
      '-> a.example',
      {
        addresses: ['192.0.2.3'],
        alias: 'b.other.example',
        aliasRegistrable: 'other.example',
        problem: null,
      },
    ],
  ])('are reported with %s', async (_name, entry, expected) => {
    const names = await resolve({
      'metrics.shop.example': entry,
      'a.example': '-> b.other.example',
      'b.other.example': ['192.0.2.3'],
    });
    expect(names.at(-1)).toMatchObject(expected);
  });

  test('are resolved through at most eight aliases', async () => {
    const asked: string[] = [];
    const loop: DnsLookup = {
      addresses: async () => [],
      async alias(name) {
        asked.push(name);
        return 'loop.example';
      },
    };
    await resolveNames(
      { ...SITE, customDomains: [] },
      { hostAddresses: ['192.0.2.1'], otherAddresses: [], edgeTarget: undefined },
      loop,
    );
    expect(asked).toHaveLength(3 * 8);
  });
});

test.each(['localhost', 'shop.localhost'])('%s is loopback without a query', async (name) => {
  const lookup = dnsLookup(['127.0.0.1:9'], 10);
  expect(await lookup.addresses(name)).toEqual(['127.0.0.1']);
  expect(await lookup.alias(name)).toBeNull();
});
