import { Resolver } from 'node:dns/promises';

export interface DnsLookup {
  /** IPv4 and IPv6 addresses; empty if there are none. Throws if no resolver answers. */
  addresses(name: string): Promise<string[]>;
  /** The target of the name's CNAME; `null` without one. */
  alias(name: string): Promise<string | null>;
}

export interface OrderLookup extends DnsLookup {
  /** The values of the CAA records `issue` that apply to the name, and the name that has them (RFC 8659). */
  caa(name: string): Promise<{ readonly owner: string; readonly issue: readonly string[] }>;
}

/**
 * Resolves names by these servers (`<address>` or `<address>:<port>`), or by the system's if there are none. Names under
 * `localhost` are loopback without a query (RFC 6761, 6.3).
 */
export function dnsLookup(servers: readonly string[], timeoutMs: number): OrderLookup {
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  if (servers.length > 0) resolver.setServers(servers);
  return {
    async addresses(name) {
      if (isLoopback(name)) return ['127.0.0.1'];
      const [four, six] = await Promise.all([
        emptyIfMissing(resolver.resolve4(name)),
        emptyIfMissing(resolver.resolve6(name)),
      ]);
      return [...four, ...six].sort();
    },
    async alias(name) {
      if (isLoopback(name)) return null;
      return (await emptyIfMissing(resolver.resolveCname(name)))[0]?.toLowerCase() ?? null;
    },
    async caa(name) {
      const labels = isLoopback(name) ? [] : name.split('.');
      for (let first = 0; first < labels.length; first += 1) {
        const owner = labels.slice(first).join('.');
        const records = await emptyIfMissing(resolver.resolveCaa(owner));
        if (records.length > 0) return { owner, issue: records.flatMap(({ issue }) => issue ?? []) };
      }
      return { owner: name, issue: [] };
    },
  };
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** A missing record is an answer. No answer is an error. */
async function emptyIfMissing<T>(records: Promise<T[]>): Promise<T[]> {
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
