interface FaultOptions extends ErrorOptions {
  /**
   * True if the manifest causes the error, so that any host would fail. Default: false, the host or its targets cause
   * it.
   */
  readonly isOfSite?: boolean;
}

/** A retry may succeed: a timeout, a 5xx, a lock, an unfinished start-up. */
export class RetryableError extends Error {
  override name = 'RetryableError';
  readonly isOfSite: boolean;
  /** Seconds that the other side asks the caller to wait. */
  readonly retryAfter: number | undefined;
  constructor(message: string, options: FaultOptions & { retryAfter?: number | undefined } = {}) {
    super(message, options);
    this.isOfSite = options.isOfSite ?? false;
    this.retryAfter = options.retryAfter;
  }
}

/** Retries fail until the manifest, the host or a permission changes. */
export class TerminalError extends Error {
  override name = 'TerminalError';
  readonly isOfSite: boolean;
  constructor(message: string, options: FaultOptions = {}) {
    super(message, options);
    this.isOfSite = options.isOfSite ?? false;
  }
}

/** A change failed too often: it is retried only after the manifest has changed, or on request. */
export class GivenUpError extends TerminalError {
  override name = 'GivenUpError';
}

/** A provider's limit is reached. Retries are rare: things must be removed first, or the limit raised. */
export class QuotaReachedError extends TerminalError {
  override name = 'QuotaReachedError';
  /** Seconds. */
  readonly retryAfter = 1_800;

  /** The same error; its message also says what an operator can do. */
  withRemedy(remedy: string): QuotaReachedError {
    return new QuotaReachedError(`${this.message}. ${remedy}`, { cause: this.cause });
  }
}
