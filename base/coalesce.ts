/**
 * Batches concurrent calls. The first call opens a window of `windowMs`; `flush` gets all items of the window (at most
 * `max`), and each caller gets the outcome of its item. Batches run one after the other. `restMs` gets the duration of
 * a batch and returns the length of the pause after it (both in milliseconds). A pause that began while more calls were
 * expected (`isExpecting`) ends early, as soon as no more are expected.
 */
export function coalesce<Item, Outcome>(
  flush: (items: readonly Item[]) => Promise<readonly PromiseSettledResult<Outcome>[]>,
  {
    windowMs,
    max = Number.POSITIVE_INFINITY,
    restMs = () => 0,
    isExpecting = () => false,
  }: {
    windowMs: number;
    max?: number;
    restMs?: (tookMs: number) => number;
    isExpecting?: () => boolean;
  },
): (item: Item) => Promise<Outcome> {
  interface Waiting {
    item: Item;
    resolve(outcome: Outcome): void;
    reject(reason: unknown): void;
  }
  let waiting: Waiting[] = [];
  let running = false;
  /** The end of the pause, by `performance.now()`. */
  let restUntil = 0;
  let expecting = false;

  async function rest(): Promise<void> {
    for (;;) {
      const left = restUntil - performance.now();
      if (left <= 0 || (expecting && !isExpecting())) return;
      await pause(expecting ? Math.min(left, windowMs) : left);
    }
  }

  async function run(): Promise<void> {
    running = true;
    await pause(windowMs);
    await rest();
    while (waiting.length > 0) {
      const batch = waiting.slice(0, max);
      waiting = waiting.slice(batch.length);
      const startedAt = performance.now();
      try {
        const outcomes = await flush(batch.map(({ item }) => item));
        batch.forEach(({ resolve, reject }, index) => {
          const outcome = outcomes[index];
          if (outcome?.status === 'fulfilled') resolve(outcome.value);
          else reject(outcome?.reason ?? new Error('the batch has fewer outcomes than items'));
        });
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      const endedAt = performance.now();
      restUntil = endedAt + restMs(endedAt - startedAt);
      expecting = isExpecting();
      if (waiting.length > 0) await rest();
    }
    running = false;
  }

  return (item) =>
    new Promise<Outcome>((resolve, reject) => {
      waiting.push({ item, resolve, reject });
      if (!running) void run();
    });
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
