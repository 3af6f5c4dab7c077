/** Calls per window. Cloudflare's own limit is 1,200 calls in 300 seconds. */
export interface CallLimit {
  readonly calls: number;
  readonly windowSeconds: number;
}

/** Counts calls in fixed windows and returns the API's rate-limit headers. */
export function callLimiter({ calls, windowSeconds }: CallLimit, now: () => Date) {
  let windowEnds = 0;
  let used = 0;
  return (): { allowed: boolean; headers: Record<string, string> } => {
    const seconds = now().getTime() / 1000;
    if (seconds >= windowEnds) {
      windowEnds = seconds + windowSeconds;
      used = 0;
    }
    const allowed = used < calls;
    if (allowed) used += 1;
    const reset = String(Math.max(1, Math.ceil(windowEnds - seconds)));
    return {
      allowed,
      headers: {
        'x-ratelimit-limit': String(calls),
        'x-ratelimit-remaining': String(calls - used),
        'x-ratelimit-reset': reset,
        ...(allowed ? {} : { 'retry-after': reset }),
      },
    };
  };
}
