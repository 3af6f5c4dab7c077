import { Pool } from 'undici';
import type { Shot } from './wrk.ts';

/** As many at once as wrk has connections. */
const CONNECTIONS = 16;

/**
 * Sends a number of requests over connections that stay open. Rejects if a status is 400 or above, or if an answer is
 * lost.
 */
export interface Slices extends AsyncDisposable {
  /** Milliseconds until all are answered. */
  send(shot: Shot, requests: number): Promise<number>;
}

/**
 * Sends requests to 127.0.0.1 in slices of a fixed number. Used in place of wrk, which ends only after a time (at least
 * a second) and opens new connections for each run.
 */
export function slices(port: number): Slices {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections: CONNECTIONS, pipelining: 1 });
  const once = ({ method = 'GET', ...shot }: Shot) =>
    new Promise<void>((resolve, reject) => {
      pool.dispatch(
        { ...shot, method },
        {
          onRequestStart() {},
          onResponseStart(_controller, status) {
            if (status >= 400) reject(new Error(`${shot.path}: status ${status}`));
          },
          onResponseData() {},
          onResponseEnd: () => resolve(),
          onResponseError: (_controller, error) => reject(error),
        },
      );
    });
  return {
    async send(shot, requests) {
      let left = requests;
      const began = performance.now();
      await Promise.all(
        Array.from({ length: CONNECTIONS }, async () => {
          while (left > 0) {
            left -= 1;
            await once(shot);
          }
        }),
      );
      return performance.now() - began;
    },
    [Symbol.asyncDispose]: () => pool.destroy(),
  };
}
