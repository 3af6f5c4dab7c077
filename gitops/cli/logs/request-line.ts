import { styleText } from 'node:util';
import type { LogRecord } from './raw.ts';

/** The line of a request; a `duplicate` has the id of an earlier one. */
export function renderRecord(
  { time, status, method, route, duration, cache, country, error, cause }: LogRecord,
  duplicate = false,
): string {
  const colour = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
  const rest = [cache, country, error, cause, duplicate ? 'duplicate' : null].filter((text) => !!text);
  const ms = `${duration} ms`.padStart(8);
  const start = `${time}  ${styleText(colour, String(status))}  ${method.padEnd(7)} ${route.padEnd(28)}`;
  return `${start} ${ms}  ${rest.join(' ')}`.trimEnd().concat('\n');
}
