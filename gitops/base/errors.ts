/** Worth trying again: a timeout, a 5xx, a lock, a start-up that isn't done. */
export class RetryableError extends Error {
  override name = 'RetryableError';
  /** Seconds that the other side asked for, where it did. */
  readonly retryAfter: number | undefined;
  constructor(message: string, options: ErrorOptions & { retryAfter?: number | undefined } = {}) {
    super(message, options);
    this.retryAfter = options.retryAfter;
  }
}

/** Will fail again until somebody changes the manifest, the host or a permission. */
export class TerminalError extends Error {
  override name = 'TerminalError';
}

/** Has failed so often that only another wish, or somebody who asks for it, has it tried again. */
export class GivenUpError extends TerminalError {
  override name = 'GivenUpError';
}
