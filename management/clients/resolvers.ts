import { Resolver } from 'node:dns/promises';
import type { TxtAnswer } from '../lifecycle/proof.ts';

const TIMEOUT_MS = 2_500;
const TRIES = 2;
/** A longer chain of aliases is taken for a loop. */
const MOST_ALIASES = 8;
/** Error codes that are answers, not failures: there is no such name, or it has no record of this type. */
const MISSING: readonly string[] = ['ENOTFOUND', 'ENODATA'];

/** What one resolver knows of a host; `problem`: it gave no answer. */
export interface HostAnswer {
  readonly resolver: string;
  readonly addresses: readonly string[];
  /** The names that its CNAME leads to, in order. */
  readonly aliases: readonly string[];
  readonly problem: string | null;
}

/** Asks several DNS servers separately, so that no single one decides. */
export class Resolvers {
  readonly #servers: readonly string[];
  readonly #timeoutMs: number;

  /** `servers`: `<address>` or `<address>:<port>`; before a port, an IPv6 address is in brackets. */
  constructor(servers: readonly string[], { timeoutMs = TIMEOUT_MS } = {}) {
    this.#servers = servers;
    this.#timeoutMs = timeoutMs;
  }

  /** The TXT records of a name. The parts of a record are joined. */
  async txt(name: string): Promise<TxtAnswer[]> {
    return await this.#each(async (resolver, server) => {
      try {
        const records = await orEmpty(resolver.resolveTxt(name));
        return { resolver: server, values: records.map((parts) => parts.join('').trim()) };
      } catch (error) {
        return { resolver: server, problem: codeOf(error) };
      }
    });
  }

  /** The addresses of a host, and what it is an alias of. */
  async host(name: string): Promise<HostAnswer[]> {
    return await this.#each(async (resolver, server) => {
      try {
        const [four, six, aliases] = await Promise.all([
          orEmpty(resolver.resolve4(name)),
          orEmpty(resolver.resolve6(name)),
          aliasesOf(resolver, name),
        ]);
        return { resolver: server, addresses: [...four, ...six].sort(), aliases, problem: null };
      } catch (error) {
        return { resolver: server, addresses: [], aliases: [], problem: codeOf(error) };
      }
    });
  }

  async #each<Answer>(ask: (resolver: Resolver, server: string) => Promise<Answer>): Promise<Answer[]> {
    return await Promise.all(
      this.#servers.map((server) => {
        // A new resolver each time, because a resolver caches answers for their TTL.
        const options = { timeout: this.#timeoutMs, maxTimeout: this.#timeoutMs, tries: TRIES };
        const resolver = new Resolver(options);
        resolver.setServers([server]);
        return ask(resolver, server);
      }),
    );
  }
}

async function aliasesOf(resolver: Resolver, name: string): Promise<string[]> {
  const aliases: string[] = [];
  while (aliases.length < MOST_ALIASES) {
    const [next] = await orEmpty(resolver.resolveCname(aliases.at(-1) ?? name));
    if (next === undefined) break;
    aliases.push(next.toLowerCase().replace(/\.$/, ''));
  }
  return aliases;
}

async function orEmpty<Record>(records: Promise<Record[]>): Promise<Record[]> {
  try {
    return await records;
  } catch (error) {
    if (MISSING.includes(codeOf(error))) return [];
    throw error;
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : String(error);
}
