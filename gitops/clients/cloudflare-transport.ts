import { RetryableError } from '../../base/errors.ts';
import type { Pace } from './pace.ts';

/** The pause after a 429 without `retry-after`; the account's window is five minutes. */
const PAUSE_SECONDS = 60;

/** Seconds of a `retry-after` header (a number or an HTTP date), or `undefined`. */
export function retryAfterSeconds(headers: Headers, now: number): number | undefined {
  const text = headers.get('retry-after')?.trim();
  if (text === undefined || text === '') return undefined;
  if (/^\d+$/.test(text)) return Number(text);
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, Math.ceil((at - now) / 1000));
}

interface PacedFetchOptions {
  /** The timeout of the whole exchange, the body included. */
  readonly timeoutMs: number;
  /** How long a 429 pauses all calls where it has no `retry-after`. */
  readonly pauseSeconds?: number | undefined;
  /** Milliseconds since 1970. */
  readonly now?: (() => number) | undefined;
}

/**
 * A `fetch` with a rate limit and a timeout. It never repeats a call: only the caller knows whether that is harmless. A
 * 429 pauses all calls with the same `pace`.
 */
export function pacedFetch(
  pace: Pace,
  { timeoutMs, pauseSeconds = PAUSE_SECONDS, now = () => Date.now() }: PacedFetchOptions,
): (request: Request) => Promise<Response> {
  return async (request) => {
    await pace.take(request.signal);
    const { response, body } = await exchange(request, timeoutMs);
    if (response.status === 429) {
      pace.pause(retryAfterSeconds(response.headers, now()) ?? pauseSeconds);
    }
    const { status, headers } = response;
    return new Response(body.byteLength === 0 ? null : body, { status, headers });
  };
}

async function exchange(request: Request, timeoutMs: number) {
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  const { pathname } = new URL(request.url);
  try {
    const response = await fetch(request, { signal, redirect: 'error' });
    return { response, body: await response.arrayBuffer() };
  } catch (cause) {
    const outcome = request.method === 'GET' ? '' : '; whether it was carried out is unknown';
    throw new RetryableError(`Cloudflare: no answer to ${request.method} ${pathname}${outcome}`, { cause });
  }
}
