/**
 * What went wrong at a certificate authority. `type` is the authority's own word without its prefix (`rateLimited`,
 * `connection`, `dns`, … : RFC 8555, 6.7), or `unreachable`, `timeout` or `unusable` where it had none.
 */
export class AcmeError extends Error {
  override name = 'AcmeError';
  readonly type: string;
  /** When it may be asked again, milliseconds since 1970; `null`: it didn't say. */
  readonly retryAt: number | null;

  constructor(type: string, message: string, options: ErrorOptions & { retryAt?: number | null } = {}) {
    super(message, options);
    this.type = type;
    this.retryAt = options.retryAt ?? null;
  }
}

const PREFIX = 'urn:ietf:params:acme:error:';

/** A problem document (RFC 9457) as far as it can be relied on; `null` where it is none of ACME's. */
export function readProblem(body: unknown): { type: string; detail: string } | null {
  if (typeof body !== 'object' || body === null || !('type' in body)) return null;
  const { type } = body;
  if (typeof type !== 'string' || !type.startsWith(PREFIX)) return null;
  const detail = 'detail' in body && typeof body.detail === 'string' ? body.detail : '';
  return { type: type.slice(PREFIX.length), detail: oneLine(detail) };
}

/** Longer than any authority's limits last; what says more is a mistake of somebody's. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/** `Retry-After`: seconds or a date (RFC 9110, 10.2.3), 30 days at most. */
export function readRetryAfter(header: unknown, now: number): number | null {
  if (typeof header !== 'string' || header === '') return null;
  const at = /^[0-9]+$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(at, now + LONGEST_WAIT_MS);
}

/** An authority quotes what it was answered, which may be anything. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 400);
}
