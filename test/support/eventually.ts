const FIRST_INTERVAL_MS = 5;

/**
 * Calls `probe` until it returns without throwing, and returns its value; after the deadline it throws the last failure.
 * Use it, and never a fixed wait, for what other processes do in their own time. The interval doubles from 5 ms up to
 * `intervalMs`, so that what is done at once is seen at once.
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  {
    timeoutMs = 60_000,
    intervalMs = 50,
    until = () => false,
  }: {
    timeoutMs?: number;
    intervalMs?: number;
    /** True for a failure after which no further attempt can succeed. */
    until?: (error: unknown) => boolean;
  } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (let interval = FIRST_INTERVAL_MS; ; interval *= 2) {
    try {
      return await probe();
    } catch (error) {
      if (until(error) || Date.now() >= deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(interval, intervalMs)));
  }
}
