import { answer, type Exchange } from './exchange.ts';

/** Both roles are healthy under any prefix: a path's end decides. */
export function isHealthPath(path: string): boolean {
  return path.endsWith('/healthz') || path.endsWith('/healthy');
}

const OLDEST = /(?:^|[,\s])server_start_millis=(\d+)/;

/** `x-sgtm-healthz: server_start_millis=<N>`: not healthy once up for longer than that. */
export function health(exchange: Exchange, uptimeMs: number): void {
  const limit = OLDEST.exec(String(exchange.request.headers['x-sgtm-healthz'] ?? ''))?.[1];
  const type = new URLSearchParams(exchange.query).get('servertype') ?? 'serverjs';
  const well = type === 'serverjs' && (limit === undefined || uptimeMs <= Number(limit));
  answer(exchange, well ? 200 : 500, 'text/plain', well ? 'ok' : 'not ok', { 'cache-control': 'no-store' });
}
