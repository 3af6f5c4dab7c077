import { contentHash } from '../../../base/ownership.ts';

const DAY_MS = 86_400_000;

interface RecyclingOptions {
  /** The age at which a container is replaced; 0: never. */
  readonly days: number;
  /** Milliseconds since the epoch: a clock that a restart does not reset. */
  readonly now: () => number;
}

/**
 * Counts the editions of each site's containers: a new edition replaces them. The image becomes unhealthy on purpose
 * after 12 to 14 days (docs/facts.md, Health), so a new edition is due before that. Each site has its own phase, so
 * the replacements are spread evenly over the `days`. `renew` makes a new edition now; a restart forgets renewals,
 * which costs one more replacement.
 */
export class Recycling {
  readonly #options: RecyclingOptions;
  readonly #renewals = new Map<string, number>();

  constructor(options: RecyclingOptions) {
    this.#options = options;
  }

  edition(site: string): string {
    const { days, now } = this.#options;
    const due = days === 0 ? 0 : Math.floor(now() / (days * DAY_MS) + phaseOf(site));
    return [due, ...(this.#renewals.has(site) ? [this.#renewals.get(site)] : [])].join('+');
  }

  renew(site: string): void {
    this.#renewals.set(site, (this.#renewals.get(site) ?? 0) + 1);
  }
}

/** 0 to 1, constant for a site and spread evenly over all sites. */
function phaseOf(site: string): number {
  return Number.parseInt(contentHash(['recycling', site]).slice(0, 8), 16) / 2 ** 32;
}
