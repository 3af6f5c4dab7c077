import { join } from 'node:path';
import { watch } from 'chokidar';

/** A local repository is also polled, because file events can get lost. */
const LOCAL_POLL_SECONDS = 30;

interface WatchOptions {
  readonly remote: boolean;
  readonly pollSeconds: number;
  readonly onError: (error: unknown) => void;
}

/**
 * Yields when a repository may have changed: at the start, on each change of a local one's refs, and each `pollSeconds`
 * (locally 30 s) plus or minus an eighth, so that many hosts don't poll one remote at once. The caller reads the
 * repository itself. Events before the next iteration count as one. A failed watch (the inotify limit of the host, say)
 * is reported to `onError`; polling continues.
 */
export async function* watchRepo(
  dir: string,
  { remote, pollSeconds, onError }: WatchOptions,
  signal: AbortSignal,
): AsyncGenerator<void> {
  let interrupt: () => void = () => undefined;
  let pending = true;
  const notify = () => {
    pending = true;
    interrupt();
  };
  const files = remote
    ? null
    : watch([join(dir, 'refs', 'heads'), join(dir, 'packed-refs'), join(dir, 'HEAD')], {
        ignoreInitial: true,
      });
  files?.on('all', notify);
  files?.on('error', onError);
  signal.addEventListener('abort', notify, { once: true });
  try {
    while (!signal.aborted) {
      if (!pending) {
        const seconds = (remote ? pollSeconds : LOCAL_POLL_SECONDS) * (0.875 + Math.random() / 4);
        const { promise, resolve } = Promise.withResolvers<void>();
        interrupt = resolve;
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
