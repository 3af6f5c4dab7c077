const DAY_MS = 86_400_000;
const SERVICE_DAYS = 12;
const SPREAD_DAYS = 2;

/** How old the server and its Tag Manager container are. The server's health depends on both. */
export interface Age {
  uptimeMs(): number;
  /** Time since the container was fetched; in the preview role, which never fetches it, since 1970. */
  containerMs(): number;
  /** Records that the container was fetched just now. */
  refresh(): void;
  /** The real server reports itself unhealthy after 12 to 14 days, so that it is restarted. */
  isPastService(): boolean;
  /** Adds days to the uptime, for tests and demonstrations. */
  add(days: number): void;
}

export function buildAge(now: () => number = () => performance.now()): Age {
  const startedAt = now();
  const serviceMs = (SERVICE_DAYS + SPREAD_DAYS * Math.random()) * DAY_MS;
  let addedMs = 0;
  let refreshedAt: number | null = null;
  const uptimeMs = () => now() - startedAt + addedMs;
  return {
    uptimeMs,
    containerMs: () => (refreshedAt === null ? Date.now() : now() - refreshedAt),
    refresh() {
      refreshedAt = now();
    },
    isPastService: () => uptimeMs() > serviceMs,
    add(days) {
      addedMs += days * DAY_MS;
    },
  };
}
