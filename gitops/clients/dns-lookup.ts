import { Resolver } from 'node:dns/promises';

export interface DnsLookup {
  /** IPv4 and IPv6 addresses; empty if there are none. Throws if no resolver answers. */
  addresses(name: string): Promise<string[]>;
  /** The target of the name's CNAME; `null` without one. */
  alias(name: string): Promise<string | null>;
}

/**
 * Resolves names by these servers (`<address>` or `<address>:<port>`), or by the system's if there are none. Names under
 * `localhost` are loopback without a query (RFC 6761, 6.3).
 */
export function dnsLookup(servers: readonly string[], timeoutMs: number): DnsLookup {
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
  };
}

function isLoopback(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost');
}

/** A missing record is an answer. No answer is an error. */
async function emptyIfMissing(records: Promise<string[]>): Promise<string[]> {
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
