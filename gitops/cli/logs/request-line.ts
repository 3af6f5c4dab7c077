import { styleText } from 'node:util';
import type { LogRecord } from './raw.ts';

/** The line of a request. */
export function renderRecord({
  time,
  status,
  method,
  route,
  duration,
  cache,
  country,
  error,
  cause,
}: LogRecord): string {
  const colour = status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green';
  const rest = [cache, country, error, cause].filter((text) => !!text);
  const ms = `${duration} ms`.padStart(8);
  const start = `${time}  ${styleText(colour, String(status))}  ${method.padEnd(7)} ${route.padEnd(28)}`;
  return `${start} ${ms}  ${rest.join(' ')}`.trimEnd().concat('\n');
}
