import { useState } from 'preact/hooks';

interface Action {
  readonly isBusy: boolean;
  readonly error: unknown;
  /** Runs the work unless other work runs; keeps its error. Resolves to whether it succeeded. */
  run(work: () => Promise<unknown>): Promise<boolean>;
}

/** Work that a button begins: one at a time, with its error beside it. */
export function useAction(): Action {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  return {
    isBusy,
    error,
    run: async (work) => {
      if (isBusy) return false;
      setBusy(true);
      setError(null);
      try {
        await work();
        return true;
      } catch (failure) {
        setError(failure);
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}
