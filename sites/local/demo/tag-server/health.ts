import type { Age } from './age.ts';
import { type Exchange, sendAnswer } from './exchange.ts';

/**
 * Both roles answer health checks under any prefix, but only to GET. With another method, it is an ordinary request.
 */
export function isHealthCheck({ method, path }: Exchange): boolean {
  return method === 'GET' && (path.endsWith('/healthz') || path.endsWith('/healthy'));
}

/** Answers 503 after the end of the service time; the server still serves other requests. */
export function health(exchange: Exchange, age: Age): void {
  const type = new URLSearchParams(exchange.query).get('servertype') || 'serverjs';
  const status = type === 'serverjs' ? (limited(exchange, age) ?? (age.isPastService() ? 503 : 200)) : 500;
  sendAnswer(exchange, status, { body: status === 200 ? 'ok' : '' });
}

/**
 * The status by the header `x-sgtm-healthz: <limit>=<milliseconds>`; only the first item of a list counts. For a
 * known limit, only the header counts: a server within it is healthy, even after its service time. 500: beyond it, or
 * not a number. `null`: no header, or an unknown limit.
 */
function limited({ request }: Exchange, age: Age): 200 | 500 | null {
  const header = request.headers['x-sgtm-healthz'];
  if (header === undefined || header === '') return null;
  const [item = ''] = String(header).split(',');
  const [name, milliseconds] = item.split('=');
  const most = Number(milliseconds);
  if (Number.isNaN(most)) return 500;
  if (name === 'server_start_millis') return age.uptimeMs() > most ? 500 : 200;
  if (name === 'container_refresh_millis') return age.containerMs() > most ? 500 : 200;
  return null;
}
