import { Resolver } from 'node:dns/promises';
import type { NameAnswer } from '../../edge/verification/contract.ts';
import type { Manifest } from '../manifest/schema.ts';
import { registrableDomain } from '../manifest/schema.ts';

/** Longer chains of aliases are a loop. */
const MOST_ALIASES = 8;

export interface DnsLookup {
  /** Both families; empty where there are none. Throws where nobody answers. */
  addresses(name: string): Promise<string[]>;
  /** The next alias; `null` where there is none. */
  alias(name: string): Promise<string | null>;
}

/**
 * The DNS as this host's resolvers tell it (`<address>` or `<address>:<port>`; none: the system's), and loopback for
 * every name under `localhost`, which no resolver is asked about (RFC 6761, 6.3).
 */
export function dnsLookup(servers: readonly string[], timeoutMs: number): DnsLookup {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  return {
    async addresses(name) {
      if (isLoopback(name)) return ['127.0.0.1'];
      const [four, six] = await Promise.all([none(resolver.resolve4(name)), none(resolver.resolve6(name))]);
      return [...four, ...six].sort();
    },
    async alias(name) {
      if (isLoopback(name)) return null;
      return (await none(resolver.resolveCname(name)))[0]?.toLowerCase() ?? null;
    },
  };
}

export interface NameDestinations {
  /** Where origin and preview hostnames lead. */
  readonly hostAddress: string;
  /** Others under which this host is reached: custom domains may lead there, too. */
  readonly otherAddresses: readonly string[];
  /** Where edge hostnames lead, as `EDGE_TARGET` has it; unset: Cloudflare proxies them itself. */
  readonly edgeTarget: string | undefined;
}

/** What a site's names resolve to, and what they must. */
export async function lookUpNames(
  { hostnames, customDomains, domains }: Pick<Manifest, 'hostnames' | 'customDomains' | 'domains'>,
  { hostAddress, otherAddresses, edgeTarget }: NameDestinations,
  lookup: DnsLookup,
): Promise<NameAnswer[]> {
  const target = edgeTarget?.replaceAll('{host}', hostnames.edge).replace(/\.$/, '');
  const edge = target === undefined ? [] : await targetAddresses(target, lookup);
  const wanted: readonly Pick<NameAnswer, 'name' | 'kind' | 'expected'>[] = [
    { name: hostnames.edge, kind: 'edge', expected: edge },
    { name: hostnames.origin, kind: 'origin', expected: [hostAddress] },
    { name: hostnames.preview, kind: 'preview', expected: [hostAddress] },
    ...customDomains.map((name) => ({
      name,
      kind: 'custom' as const,
      expected: [hostAddress, ...otherAddresses],
    })),
    ...domains.map(({ domain }) => ({ name: domain, kind: 'page' as const, expected: [] })),
  ];
  return await Promise.all(
    wanted.map(async (one) => ({
      ...one,
      registrable: registrableDomain(one.name),
      ...(await lookUp(one.name, lookup)),
    })),
  );
}

async function lookUp(name: string, lookup: DnsLookup) {
  const unknown = { addresses: [], alias: null, aliasRegistrable: null };
  try {
    const [addresses, alias] = await Promise.all([lookup.addresses(name), lastAlias(name, lookup)]);
    const aliasRegistrable = alias === null ? null : registrableDomain(alias);
    return { addresses, alias, aliasRegistrable, problem: addresses.length === 0 ? 'no such name' : null };
  } catch (error) {
    return { ...unknown, problem: error instanceof Error ? error.message : String(error) };
  }
}

async function lastAlias(name: string, lookup: DnsLookup): Promise<string | null> {
  let last: string | null = null;
  for (let hop = 0; hop < MOST_ALIASES; hop += 1) {
    const next = await lookup.alias(last ?? name);
    if (next === null) break;
    last = next;
  }
  return last;
}

/** An address is its own. A target that can't be looked up allows anything that answers. */
async function targetAddresses(target: string, lookup: DnsLookup): Promise<string[]> {
  if (/^[\d.]+$|:/.test(target)) return [target];
  return await lookup.addresses(target).catch(() => []);
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** That there is no such record is an answer; that nobody answers is not. */
async function none(records: Promise<string[]>): Promise<string[]> {
  try {
    return await records;
  } catch (error) {
    if (
      error instanceof Error &&
      'code' in error &&
      (error.code === 'ENODATA' || error.code === 'ENOTFOUND')
    ) {
      return [];
    }
    throw error;
  }
}
