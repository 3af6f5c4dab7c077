const DAY_MS = 86_400_000;
const WELL_FOR_DAYS = 12;
const SPREAD_DAYS = 2;

/** How long the server has been up, as far as its health goes. */
export interface Age {
  uptimeMs(): number;
  /** The real server turns unhealthy on purpose after 12 to 14 days, so that somebody starts it anew. */
  isPastService(): boolean;
  /** Makes it that much older: nobody waits for a fortnight to see it. */
  add(days: number): void;
}

export function buildAge(now: () => number = () => performance.now()): Age {
  const startedAt = now();
  const serviceMs = (WELL_FOR_DAYS + SPREAD_DAYS * Math.random()) * DAY_MS;
  let addedMs = 0;
  const uptimeMs = () => now() - startedAt + addedMs;
  return {
    uptimeMs,
    isPastService: () => uptimeMs() > serviceMs,
    add(days) {
      addedMs += days * DAY_MS;
    },
  };
}
