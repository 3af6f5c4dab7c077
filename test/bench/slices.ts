import { Pool } from 'undici';
import type { Shot } from './wrk.ts';

/** As many at once as wrk has connections. */
const CONNECTIONS = 16;

/** Sends a number of requests over connections that stay open. Rejects for a status from 400 and for a lost answer. */
export interface Slices extends AsyncDisposable {
  /** Milliseconds until all are answered. */
  send(shot: Shot, requests: number): Promise<number>;
}

/**
 * Asks 127.0.0.1 in slices of a fixed number of requests: wrk ends by time only, after a second at the earliest, and opens
 * its connections anew.
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
