/** Where origin and preview hostnames point to, if that can change: for example, the address of a cluster's Service. */
export interface FollowedDestination {
  /** An address or a host name; `null`: not known yet. */
  current(): string | null;
  /**
   * Brings `current` up to date. While there is no destination that names may point to, rejects with a `RetryableError`
   * or `TerminalError` that says what to do.
   */
  check(signal: AbortSignal): Promise<void>;
  /** An item whenever `check` would find something else. */
  changes(signal: AbortSignal): AsyncIterable<void>;
}
