import type { Age } from './age.ts';
import { type Exchange, sendAnswer } from './exchange.ts';

/** Both roles answer health checks under any prefix: only the end of the path counts. */
export function isHealthPath(path: string): boolean {
  return path.endsWith('/healthz') || path.endsWith('/healthy');
}

const MAX_UPTIME = /(?:^|[,\s])server_start_millis=(\d+)/;

/**
 * Answers 503 after the end of the service time; the server still serves other requests. With the request header
 * `x-sgtm-healthz: server_start_millis=<N>`, it answers 500 when the server has been up for more than N milliseconds.
 */
export function health(exchange: Exchange, age: Age): void {
  const limit = MAX_UPTIME.exec(String(exchange.request.headers['x-sgtm-healthz'] ?? ''))?.[1];
  const type = new URLSearchParams(exchange.query).get('servertype') ?? 'serverjs';
  const isHealthy = type === 'serverjs' && (limit === undefined || age.uptimeMs() <= Number(limit));
  const status = age.isPastService() ? 503 : isHealthy ? 200 : 500;
  sendAnswer(exchange, status, {
    body: status === 200 ? 'ok' : 'not ok',
    headers: { 'cache-control': 'no-store' },
  });
}
