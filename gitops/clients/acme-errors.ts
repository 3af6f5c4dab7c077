/**
 * A failure at a certificate authority. `type` is the authority's error type without its prefix (`rateLimited`,
 * `connection`, `dns`, … : RFC 8555, 6.7), or `unreachable`, `timeout` or `unusable` if there is none.
 */
export class AcmeError extends Error {
  override name = 'AcmeError';
  readonly type: string;
  /** The end of `Retry-After`, milliseconds since 1970; `null`: the authority sent none. */
  readonly retryAt: number | null;

  constructor(type: string, message: string, options: ErrorOptions & { retryAt?: number | null } = {}) {
    super(message, options);
    this.type = type;
    this.retryAt = options.retryAt ?? null;
  }
}

const PREFIX = 'urn:ietf:params:acme:error:';

/** Type and detail of an ACME problem document (RFC 9457); `null` for any other body. */
export function readProblem(body: unknown): { type: string; detail: string } | null {
  if (typeof body !== 'object' || body === null || !('type' in body)) return null;
  const { type } = body;
  if (typeof type !== 'string' || !type.startsWith(PREFIX)) return null;
  const detail = 'detail' in body && typeof body.detail === 'string' ? body.detail : '';
  return { type: type.slice(PREFIX.length), detail: oneLine(detail) };
}

/** Longer than the limits of any authority; a longer `Retry-After` is taken for a mistake. */
const LONGEST_WAIT_MS = 30 * 86_400_000;

/** `Retry-After`: seconds or a date (RFC 9110, 10.2.3), 30 days at most. */
export function readRetryAfter(header: unknown, now: number): number | null {
  if (typeof header !== 'string' || header === '') return null;
  const at = /^[0-9]+$/.test(header) ? now + Number(header) * 1000 : Date.parse(header);
  return Number.isNaN(at) ? null : Math.min(at, now + LONGEST_WAIT_MS);
}

/** An authority quotes the answers that it received, which may contain anything. */
function oneLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').slice(0, 400);
}
