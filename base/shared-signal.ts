/** Runs work for several callers. Its signal aborts when the signals of all callers have aborted. */
export async function withSharedSignal<T>(
  signals: readonly AbortSignal[],
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const distinct = new Set(signals);
  const controller = new AbortController();
  const check = () => {
    if ([...distinct].every(({ aborted }) => aborted)) controller.abort();
  };
  for (const signal of distinct) signal.addEventListener('abort', check);
  try {
    check();
    return await work(controller.signal);
  } finally {
    for (const signal of distinct) signal.removeEventListener('abort', check);
  }
}
