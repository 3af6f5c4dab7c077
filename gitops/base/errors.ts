/** A retry may succeed: a timeout, a 5xx, a lock, an unfinished start-up. */
export class RetryableError extends Error {
  override name = 'RetryableError';
  /** Seconds that the other side asks the caller to wait. */
  readonly retryAfter: number | undefined;
  constructor(message: string, options: ErrorOptions & { retryAfter?: number | undefined } = {}) {
    super(message, options);
    this.retryAfter = options.retryAfter;
  }
}

/** Retries fail until the manifest, the host or a permission changes. */
export class TerminalError extends Error {
  override name = 'TerminalError';
}

/** Failed too often: it is retried only after a change of the manifest, or on request. */
export class GivenUpError extends TerminalError {
  override name = 'GivenUpError';
}
