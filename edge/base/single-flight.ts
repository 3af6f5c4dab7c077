/** A flight older than this is given up for lost (its request was cancelled, say), in milliseconds. */
const LOST_AFTER = 10_000;

interface Flight<T> {
  readonly startedAt: number;
  readonly outcome: Promise<T>;
}

/**
 * One run for all that ask for the same key while it is under way. The run belongs to the request that began it, which
 * must keep it alive past its own answer (`waitUntil`); the others wait for it as long as they like.
 */
export function singleFlight<T>(now: () => number) {
  const flights = new Map<string, Flight<T>>();
  return (key: string, waitUntil: (work: Promise<unknown>) => void, run: () => Promise<T>): Promise<T> => {
    const current = flights.get(key);
    if (current !== undefined && now() - current.startedAt < LOST_AFTER) return current.outcome;
    const outcome = run();
    const flight = { startedAt: now(), outcome };
    flights.set(key, flight);
    const land = () => {
      if (flights.get(key) === flight) flights.delete(key);
    };
    waitUntil(outcome.then(land, land));
    return outcome;
  };
}

/** `work`'s outcome if it comes within `ms`, else `undefined`; `work` goes on. */
export async function within<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
  const late = Promise.withResolvers<undefined>();
  const timer = setTimeout(() => late.resolve(undefined), ms);
  try {
    return await Promise.race([work, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
