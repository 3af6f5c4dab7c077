/**
 * Polls until `probe` returns without throwing, and answers its value; past the deadline it throws the last failure.
 * For things that other processes do in their own time: never a fixed wait.
 */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  {
    timeoutMs = 20_000,
    intervalMs = 50,
    until = () => false,
  }: {
    timeoutMs?: number;
    intervalMs?: number;
    /** True for a failure that no waiting mends. */
    until?: (error: unknown) => boolean;
  } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (until(error) || Date.now() >= deadline) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}
