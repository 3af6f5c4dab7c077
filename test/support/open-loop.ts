/** The pause between two checks for due calls. */
const TICK_MS = 5;

/**
 * Calls `send` with 0, 1, 2 and so on, `perSecond` times a second until `end()`: each on time, whether or not earlier calls
 * have resolved. While `mostOpen` calls (default: no limit) are open, those that are due are omitted for good. `send` never
 * rejects.
 */
export function startOpenLoop(
  { perSecond, mostOpen = Number.POSITIVE_INFINITY }: { perSecond: number; mostOpen?: number },
  send: (number: number) => Promise<void>,
) {
  const open = new Map<number, Promise<void>>();
  const begun = performance.now();
  const now = () => (performance.now() - begun) / 1000;
  let sent = 0;
  let omitted = 0;
  const timer = setInterval(() => {
    const due = Math.floor(now() * perSecond) - omitted;
    const next = Math.min(due, sent + mostOpen - open.size);
    omitted += due - next;
    for (; sent < next; sent += 1) {
      const number = sent;
      const sending = send(number);
      open.set(number, sending);
      void sending.finally(() => open.delete(number));
    }
  }, TICK_MS);
  return {
    /** Seconds since its start. */
    now,
    /** How many were sent. */
    sent: () => sent,
    /** The numbers of those that have not resolved. */
    waiting: () => new Set(open.keys()),
    /** Resolves to the number of calls once all of them have resolved. */
    async end(): Promise<number> {
      clearInterval(timer);
      await Promise.all(open.values());
      return sent;
    },
  };
}
