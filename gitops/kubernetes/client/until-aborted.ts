/**
 * The outcome of `work`, or an error as soon as one of the signals aborts, whatever `work` does then. `reason` gives
 * that error. Default: the signal's own reason. No combined signal is made: it would be kept until garbage is
 * collected.
 */
export async function untilAborted<Result>(
  work: Promise<Result>,
  signals: readonly AbortSignal[],
  reason: () => unknown = () => signals.find(({ aborted }) => aborted)?.reason,
): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(reason());
  if (signals.some((signal) => signal.aborted)) abort();
  for (const signal of signals) signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    for (const signal of signals) signal.removeEventListener('abort', abort);
  }
}
