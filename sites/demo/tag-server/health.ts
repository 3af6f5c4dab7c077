import type { Age } from './age.ts';
import { type Exchange, sendAnswer } from './exchange.ts';

/** Both roles are healthy under any prefix: a path's end decides. */
export function isHealthPath(path: string): boolean {
  return path.endsWith('/healthz') || path.endsWith('/healthy');
}

const OLDEST = /(?:^|[,\s])server_start_millis=(\d+)/;

/**
 * 503 from a server that has been up for its time, though it serves on. `x-sgtm-healthz: server_start_millis=<N>`: not
 * healthy once up for longer than that.
 */
export function health(exchange: Exchange, age: Age): void {
  const limit = OLDEST.exec(String(exchange.request.headers['x-sgtm-healthz'] ?? ''))?.[1];
  const type = new URLSearchParams(exchange.query).get('servertype') ?? 'serverjs';
  const asAsked = type === 'serverjs' && (limit === undefined || age.uptimeMs() <= Number(limit));
  const status = age.isPastService() ? 503 : asAsked ? 200 : 500;
  sendAnswer(exchange, status, 'text/plain', status === 200 ? 'ok' : 'not ok', {
    'cache-control': 'no-store',
  });
}
