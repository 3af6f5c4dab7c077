import { randomUUID } from 'node:crypto';

/** Short and plain enough to be copied into logs, commit trailers and headers as it is. */
const SAFE = /^[A-Za-z0-9._-]{1,64}$/;

/** The caller's `x-request-id` where it is safe to repeat, else a new one. */
export function requestIdFrom(headers: Readonly<Record<string, unknown>>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && SAFE.test(given) ? given : randomUUID();
}
