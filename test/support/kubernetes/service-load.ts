import http from 'node:http';
import { startOpenLoop } from '../open-loop.ts';

interface ServiceLoadReport {
  readonly sent: number;
  /** One line for each request that got no 200 within the limit: the seconds since the start, and what went wrong. */
  readonly failures: readonly string[];
  /** Milliseconds that the slowest took. */
  readonly slowest: number;
  /** The different texts of answers. */
  readonly answers: ReadonlySet<string>;
}

/** An answer after this time is a failure. */
const LIMIT_MS = 5_000;
const KEPT = 8;

/**
 * Sends `perSecond` requests a second until `end()`: half are POSTs with a body, and of both kinds half are on kept
 * connections. Each is sent on time, even if earlier ones are open (on kept connections: up to 8), and none twice.
 */
export function startServiceLoad({
  host,
  port,
  perSecond,
}: {
  host: string;
  port: number;
  perSecond: number;
}) {
  // The connection that was idle for longest is used first, so that none is idle for long.
  const kept = new http.Agent({ keepAlive: true, maxSockets: KEPT, scheduling: 'fifo' });
  const failures: string[] = [];
  const answers = new Set<string>();
  let slowest = 0;

  function ask(number: number): Promise<string> {
    const isPost = number % 2 === 0;
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const request = http.request(
      {
        host,
        port,
        agent: number % 4 < 2 ? kept : false,
        method: isPost ? 'POST' : 'GET',
        path: `/g/collect?v=2&n=${number}`,
        signal: AbortSignal.timeout(LIMIT_MS),
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('error', reject);
        response.on('end', () =>
          response.statusCode === 200 ? resolve(text) : reject(new Error(`status ${response.statusCode}`)),
        );
      },
    );
    request.on('error', reject);
    request.end(isPost ? `en=purchase&n=${number}&${'x'.repeat(2_000)}` : undefined);
    return promise;
  }

  async function one(number: number): Promise<void> {
    const started = performance.now();
    const at = loop.now();
    try {
      answers.add(await ask(number));
    } catch (error) {
      failures.push(
        `request ${number}, due at ${at.toFixed(1)} s: ${error instanceof Error ? error.message : error}`,
      );
    }
    slowest = Math.max(slowest, performance.now() - started);
  }

  const loop = startOpenLoop({ perSecond }, one);
  return {
    /** Resolves when every request was answered or has failed. */
    async end(): Promise<ServiceLoadReport> {
      const sent = await loop.end();
      kept.destroy();
      return { sent, failures, slowest, answers };
    },
  };
}
