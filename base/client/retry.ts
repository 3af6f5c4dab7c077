/** Milliseconds before the first repetition of a request without an answer; doubled each time. */
const NO_ANSWER_MS = 500;

interface RetryOptions {
  readonly fetch: (request: Request) => Promise<Response>;
  /** How often a request is repeated at most. */
  readonly retries: number;
  /** A longer `retry-after` isn't waited for. */
  readonly longestWaitMs: number;
  /** The `authorization` header of each attempt; `null`: none. */
  authorization(): Promise<string | null>;
}

/**
 * Sends the request, and repeats it after a 429 or 503 at the time that `retry-after` names. Without this header an
 * answer is final. After a 503 and without an answer, it is repeated only if that has no further effect: a GET, or a
 * request with an idempotency key.
 */
export async function sendWithRetries(request: Request, options: RetryOptions): Promise<Response> {
  for (let attempt = 0; ; attempt += 1) {
    const mayRepeat = attempt < options.retries;
    const sent = request.clone();
    const authorization = await options.authorization();
    if (authorization !== null) sent.headers.set('authorization', authorization);
    let waitMs: number;
    try {
      const response = await options.fetch(sent);
      const isLater = response.status === 429 || (response.status === 503 && isRepeatable(request));
      const later = mayRepeat && isLater ? waitOf(response.headers) : null;
      if (later === null || later > options.longestWaitMs) return response;
      await response.body?.cancel();
      waitMs = later;
    } catch (error) {
      if (!mayRepeat || request.signal.aborted || !isRepeatable(request)) throw error;
      waitMs = NO_ANSWER_MS * 2 ** attempt;
    }
    await pause(waitMs, request.signal);
  }
}

function isRepeatable({ method, headers }: Request): boolean {
  return method === 'GET' || headers.has('idempotency-key');
}

/** Milliseconds until the time that `retry-after` names: seconds or a date (RFC 9110, 10.2.3). `null`: no time. */
function waitOf(headers: Headers): number | null {
  const text = headers.get('retry-after');
  if (text === null) return null;
  if (/^\d+$/.test(text)) return Number(text) * 1000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? null : Math.max(0, at - Date.now());
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    if (signal.aborted) return reject(signal.reason);
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal.addEventListener('abort', abort, { once: true });
  });
}
