/**
 * Thrown by a behaviour, or by the target that it uses, where nothing can be said about the real thing: the network is
 * away, or something that the behaviour needs was not given. The message says what to do.
 */
export class NotTried extends Error {
  override name = 'NotTried';
}

/** The reason in an error or in one of its causes; `null`: the error says something about the target. */
export function reasonNotTried(error: unknown): string | null {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if (cause instanceof NotTried) return cause.message;
  }
  return null;
}
