import type { Dispatcher } from 'undici';

/** An answer that was read to its end. */
export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/**
 * One request with its whole answer. Rejects with the signal's reason as soon as the signal aborts, and with an error
 * after `limitMs`: if its connection is still being made, the request is never sent, else its connection is closed.
 *
 * It uses undici's `dispatch`, because `request` makes a stream for each call, and several more objects if there is a
 * signal: that takes more processor time than all the rest of a call.
 */
export function exchange(
  dispatcher: Dispatcher,
  options: Dispatcher.DispatchOptions,
  { signal, limitMs }: { readonly signal: AbortSignal; readonly limitMs: number },
): Promise<Exchanged> {
  // A signal that has already aborted calls no listener.
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null;
    let ended: Error | null = null;
    let head: Omit<Exchanged, 'text'> = { status: 0, headers: {} };
    const chunks: Buffer[] = [];
    const settle = () => {
      clearTimeout(late);
      signal.removeEventListener('abort', abort);
    };
    const end = (reason: unknown) => {
      settle();
      ended = reason instanceof Error ? reason : new Error(String(reason));
      reject(reason);
      controller?.abort(ended);
    };
    const abort = () => end(signal.reason);
    const late = setTimeout(() => end(new LateError(limitMs)), limitMs);
    signal.addEventListener('abort', abort, { once: true });
    dispatcher.dispatch(options, {
      onRequestStart(started) {
        controller = started;
        if (ended !== null) started.abort(ended);
      },
      onResponseStart(_, status, headers) {
        head = { status, headers };
      },
      onResponseData(_, chunk) {
        chunks.push(chunk);
      },
      onResponseEnd() {
        settle();
        resolve({ ...head, text: textOf(chunks) });
      },
      onResponseError(_, error) {
        settle();
        reject(error);
      },
    });
  });
}

/** No whole answer came in time. */
export class LateError extends Error {
  constructor(limitMs: number) {
    super(`none within ${limitMs / 1000} s`);
  }
}

function textOf(chunks: readonly Buffer[]): string {
  const [only = Buffer.alloc(0), ...more] = chunks;
  return (more.length === 0 ? only : Buffer.concat(chunks)).toString();
}
