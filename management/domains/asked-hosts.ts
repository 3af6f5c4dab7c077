import { LRUCache } from 'lru-cache';
import type { HostAnswer } from '../clients/resolvers.ts';
import type { Context } from '../context/context.ts';
import type { ResolvedHost } from './cookie-lifetime.ts';

/** How long answers of resolvers are shown without asking again. */
const KEPT_MS = 60_000;
/** The shortest time between two checks of one domain, or of one handover link. */
const PAUSE_MS = 10_000;
const MOST_KEPT = 10_000;

interface Asked {
  readonly answers: Promise<HostAnswer[]>;
  readonly at: Date;
  readonly until: number;
}

/**
 * What the resolvers answered lately. Answers are kept, because the resolvers would refuse a query for each read of the
 * API.
 */
export class AskedHosts {
  readonly #context: Pick<Context, 'resolvers' | 'clock'>;
  readonly #asked = new LRUCache<string, Asked>({ max: MOST_KEPT });
  readonly #checked = new LRUCache<string, number>({ max: MOST_KEPT });

  constructor(context: Pick<Context, 'resolvers' | 'clock'>) {
    this.#context = context;
  }

  async ask(name: string): Promise<ResolvedHost & { readonly at: Date }> {
    const { resolvers, clock } = this.#context;
    const known = this.#asked.get(name);
    const isFresh = known !== undefined && known.until > clock.now();
    const asked = isFresh
      ? known
      : { answers: resolvers.host(name), at: clock.date(), until: clock.now() + KEPT_MS };
    if (!isFresh) this.#asked.set(name, asked);
    return { name, answers: await asked.answers, at: asked.at };
  }

  /**
   * Forgets the answers for these names, so that the next queries go to the resolvers; then returns `null`. If that was
   * done for the domain just before, forgets nothing and returns the seconds to wait.
   */
  forget(domain: string, names: readonly string[]): number | null {
    const now = this.#context.clock.now();
    const next = (this.#checked.get(domain) ?? Number.NEGATIVE_INFINITY) + PAUSE_MS;
    if (next > now) return Math.ceil((next - now) / 1000);
    this.#checked.set(domain, now);
    for (const name of names) this.#asked.delete(name);
    return null;
  }
}
