export interface CallLimit {
  /** Calls in any window of `seconds`, all callers together. */
  readonly calls: number;
  readonly seconds: number;
}

interface Verdict {
  readonly allowed: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Counts calls and returns the API's rate-limit headers for each. The call beyond the limit is refused, and so is every
 * call in the window that begins with it (docs/facts.md, Cloudflare API).
 */
export function callLimiter({ calls, seconds }: CallLimit, now: () => Date): () => Verdict {
  const windowMs = seconds * 1000;
  /** Times of the calls in the window, oldest first. */
  const times: number[] = [];
  let blockedUntil = Number.NEGATIVE_INFINITY;

  return () => {
    const time = now().getTime();
    const passed = times.findIndex((at) => at > time - windowMs);
    times.splice(0, passed === -1 ? times.length : passed);
    if (time >= blockedUntil && times.length >= calls) blockedUntil = time + windowMs;
    const allowed = time >= blockedUntil;
    if (allowed) times.push(time);
    const more = allowed ? (times[0] ?? time) + windowMs : blockedUntil;
    const wait = Math.max(1, Math.ceil((more - time) / 1000));
    const left = allowed ? calls - times.length : 0;
    return {
      allowed,
      headers: {
        ratelimit: `"default";r=${left};t=${wait}`,
        'ratelimit-policy': `"default";q=${calls};w=${seconds}`,
        'x-ratelimit-limit': String(calls),
        'x-ratelimit-remaining': String(left),
        ...(allowed
          ? {}
          : { 'retry-after': String(wait), 'x-ratelimit-reset': new Date(blockedUntil).toUTCString() }),
      },
    };
  };
}
