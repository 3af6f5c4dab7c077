import https from 'node:https';
import type { ProxyEndpoint } from '../../gitops/appliers/proxy/backend.ts';
import { startOpenLoop } from './open-loop.ts';

interface LoadReport {
  readonly sent: number;
  /** What went wrong, once for each request that was not answered with a 2xx. */
  readonly failures: readonly string[];
  /** Kept-alive connections that were closed before the answer to a request, which was sent again on another one. */
  readonly reopened: number;
  /** Milliseconds that the slowest took. */
  readonly slowest: number;
}

/** The most requests that wait for an answer at once. */
const MAX_OPEN = 200;

/**
 * Sends `perSecond` requests a second through a proxy until `end()`: GET and POST alternately, three in four on new
 * connections, one on a kept-alive one. Each is sent on time, whether or not earlier ones were answered. If the machine
 * is too busy for that, some are omitted: the proxy would rightly refuse a burst of late ones (`NAME_CONNECTIONS`).
 *
 * A server may close a kept-alive connection just when the client uses it again, and can't prevent that. The request is
 * sent again, as Node's manual says (`request.reusedSocket`), and counted.
 */
export function startLoad(endpoint: ProxyEndpoint, host: string, { perSecond }: { perSecond: number }) {
  const kept = new https.Agent({ keepAlive: true, maxSockets: 16, timeout: 20_000 });
  const failures: string[] = [];
  const seen = new WeakSet<object>();
  let slowest = 0;
  let reopened = 0;

  const options = {
    host: endpoint.address,
    port: endpoint.tlsPort,
    servername: host,
    rejectUnauthorized: false,
    headers: { host: `${host}:${endpoint.tlsPort}` },
    timeout: 20_000,
  };

  /** `null`: answered with a 2xx; else what went wrong. */
  function ask(number: number, agent: https.Agent | false): Promise<string | null> {
    const post = number % 2 === 0;
    const { promise, resolve } = Promise.withResolvers<string | null>();
    const request = https.request(
      { ...options, agent, method: post ? 'POST' : 'GET', path: `/g/collect?v=2&n=${number}` },
      (response) => {
        const { statusCode = 0 } = response;
        response.resume();
        response.on('end', () =>
          resolve(statusCode >= 200 && statusCode < 300 ? null : `status ${statusCode}`),
        );
        response.on('error', (error) => resolve(error.message));
      },
    );
    // Node's own `reusedSocket` is false for a connection that passed directly from one request to a waiting one.
    let reused = false;
    request.on('socket', (socket) => {
      reused = seen.has(socket);
      seen.add(socket);
    });
    request.on('timeout', () => request.destroy(new Error('no answer in 20 s')));
    request.on('error', (error: NodeJS.ErrnoException) => {
      if (!reused || error.code !== 'ECONNRESET') return resolve(`${error.message}`);
      reopened += 1;
      resolve(ask(number, false));
    });
    request.end(post ? `en=purchase&n=${number}&${'x'.repeat(2_000)}` : undefined);
    return promise;
  }

  async function one(number: number): Promise<void> {
    const started = performance.now();
    const failure = await ask(number, number % 8 < 2 ? kept : false);
    slowest = Math.max(slowest, performance.now() - started);
    if (failure !== null) failures.push(`request ${number}: ${failure}`);
  }

  const loop = startOpenLoop({ perSecond, mostOpen: MAX_OPEN }, one);
  return {
    sent: loop.sent,
    /** The numbers of requests that wait for an answer. */
    waiting: loop.waiting,
    /** Resolves when every request was answered or has failed. */
    async end(): Promise<LoadReport> {
      const sent = await loop.end();
      kept.destroy();
      return { sent, failures, reopened, slowest };
    },
  };
}
