import type { NameAnswer } from '../../edge/verification/contract.ts';
import { type Manifest, provenHosts, registrableDomain } from '../../sites/manifest/schema.ts';
import type { DnsLookup } from '../clients/dns-lookup.ts';

/** A longer chain of aliases, such as a loop, is not followed to its end. */
const MAX_ALIASES = 8;

export interface NameDestinations {
  /**
   * The addresses of origin and preview hostnames; empty: they aren't known, so these and custom domains may have any.
   */
  readonly hostAddresses: readonly string[];
  /** Other public addresses of this host: custom domains may resolve to them, too. */
  readonly otherAddresses: readonly string[];
  /** The target of edge hostnames (`EDGE_TARGET`); unset if Cloudflare proxies them. */
  readonly edgeTarget: string | undefined;
}

/** What a site's names resolve to, and what they must resolve to. */
export async function resolveNames(
  manifest: Pick<Manifest, 'hostnames' | 'customDomains' | 'domains' | 'unproven'>,
  { hostAddresses, otherAddresses, edgeTarget }: NameDestinations,
  lookup: DnsLookup,
): Promise<NameAnswer[]> {
  const { hostnames, domains } = manifest;
  const target = edgeTarget?.replaceAll('{host}', hostnames.edge).replace(/\.$/, '');
  const edge = target === undefined ? [] : await targetAddresses(target, lookup);
  // Where the host's own addresses aren't known, the others alone would make a right address seem wrong.
  const ofHost = hostAddresses.length === 0 ? [] : [...hostAddresses, ...otherAddresses];
  const wanted: readonly Pick<NameAnswer, 'name' | 'kind' | 'expected'>[] = [
    { name: hostnames.edge, kind: 'edge', expected: edge },
    { name: hostnames.origin, kind: 'origin', expected: [...hostAddresses] },
    { name: hostnames.preview, kind: 'preview', expected: [...hostAddresses] },
    ...provenHosts(manifest).map((name) => ({ name, kind: 'custom' as const, expected: ofHost })),
    ...domains.map(({ domain }) => ({ name: domain, kind: 'page' as const, expected: [] })),
  ];
  return await Promise.all(
    wanted.map(async (one) => ({
      ...one,
      registrable: registrableDomain(one.name),
      ...(await resolveName(one.name, lookup)),
    })),
  );
}

async function resolveName(name: string, lookup: DnsLookup) {
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
  for (let hop = 0; hop < MAX_ALIASES; hop += 1) {
    const next = await lookup.alias(last ?? name);
    if (next === null) break;
    last = next;
  }
  return last;
}

/** The addresses of a target, which may be an address itself. Empty, which allows any, if it can't be resolved. */
async function targetAddresses(target: string, lookup: DnsLookup): Promise<string[]> {
  if (/^[\d.]+$|:/.test(target)) return [target];
  return await lookup.addresses(target).catch(() => []);
}
