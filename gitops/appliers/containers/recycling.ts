import { contentHash } from '../../base/ownership.ts';

const DAY_MS = 86_400_000;

export interface RecyclingOptions {
  /** How old a container may become; 0: as old as it likes. */
  readonly days: number;
  /** Milliseconds since the epoch; a clock that is the same after a restart. */
  readonly now: () => number;
}

/**
 * Which edition of its containers each site is due. The image turns unhealthy on purpose after 12 to 14 days
 * (facts.md, Health), so another edition comes in time, at a moment of each site's own: half of the sites change in
 * half of the time. Whoever asks for a renewal gets another edition at once; a renewal that a restart forgets is one
 * more swap, and no harm.
 */
export class Recycling {
  readonly #options: RecyclingOptions;
  readonly #renewals = new Map<string, number>();

  constructor(options: RecyclingOptions) {
    this.#options = options;
  }

  edition(site: string): string {
    const { days, now } = this.#options;
    const due = days === 0 ? 0 : Math.floor(now() / (days * DAY_MS) + share(site));
    return [due, ...(this.#renewals.has(site) ? [this.#renewals.get(site)] : [])].join('+');
  }

  renew(site: string): void {
    this.#renewals.set(site, (this.#renewals.get(site) ?? 0) + 1);
  }
}

/** 0 to 1, always the same for a site, and spread evenly over all of them. */
function share(site: string): number {
  return Number.parseInt(contentHash(['recycling', site]).slice(0, 8), 16) / 2 ** 32;
}
