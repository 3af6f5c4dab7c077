import { join } from 'node:path';
import { watch } from 'chokidar';

/** A local repository is looked at this often even if no file event came: events get lost, files don't. */
const LOCAL_POLL_SECONDS = 30;

export interface WatchOptions {
  readonly remote: boolean;
  readonly pollSeconds: number;
  readonly onError: (error: unknown) => void;
}

/**
 * Yields whenever a repository may have moved: at once, on every change of its refs on disk, and every
 * `pollSeconds` with a quarter of jitter (so that many hosts don't ask one remote in step). Carries no data: whoever
 * wakes reads the repository itself. Wakes that come together are one. A watch that fails (the host's inotify limit is
 * reached, say) is told to `onError` and costs promptness only.
 */
export async function* watchRepo(
  dir: string,
  { remote, pollSeconds, onError }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<void> {
  let wake: () => void = () => undefined;
  let pending = true;
  const nudge = () => {
    pending = true;
    wake();
  };
  const files = remote
    ? null
    : watch([join(dir, 'refs', 'heads'), join(dir, 'packed-refs'), join(dir, 'HEAD')], {
        ignoreInitial: true,
      });
  files?.on('all', nudge);
  files?.on('error', onError);
  signal.addEventListener('abort', nudge, { once: true });
  try {
    while (!signal.aborted) {
      if (!pending) {
        const seconds = (remote ? pollSeconds : LOCAL_POLL_SECONDS) * (0.875 + Math.random() / 4);
        const { promise, resolve } = Promise.withResolvers<void>();
        wake = resolve;
        const timer = setTimeout(resolve, seconds * 1000);
        if (!pending) await promise;
        clearTimeout(timer);
      }
      pending = false;
      if (!signal.aborted) yield;
    }
  } finally {
    await files?.close();
  }
}
