import http from 'node:http';
import https from 'node:https';
import type { TLSSocket } from 'node:tls';
import { startOpenLoop } from '../open-loop.ts';

/** Where requests are sent: with `servername` by HTTPS, without it by plain HTTP. */
export interface LoadTarget {
  readonly address: string;
  readonly port: number;
  readonly servername?: string;
}

interface LoadFailure {
  readonly number: number;
  /** True if the edge would send such a request again: nothing of it had been sent, or it is a GET. */
  readonly canBeSentAgain: boolean;
  /** True if it was lost behind the gateway, or behind the Service compared with it: no 2xx, or not in time. */
  readonly isBehind: boolean;
  /** Seconds from the start of the load to that of the request. */
  readonly at: number;
  readonly reason: string;
}

export interface EdgeLoadReport {
  readonly sent: number;
  readonly failures: readonly LoadFailure[];
  /** Requests that were sent a second time, because no connection was made, or because a GET had no answer. */
  readonly again: number;
  /** POSTs on a kept connection that was closed just when it was used; sent a second time, which no edge does. */
  readonly raced: number;
  /** Requests with an answer: seconds from the start of the load to that of the request, and milliseconds it took. */
  readonly answered: readonly { readonly at: number; readonly ms: number; readonly again: boolean }[];
}

/** A request that has no answer after this time has failed. */
const LIMIT_MS = 5_000;
/** A kept connection that ends sooner than this after a request was written counts as closed before the write. */
const RACE_MS = 200;
/**
 * The same limit for a load during which gateways end, but no network is cut. nginx closes its kept connections when it
 * ends, even one with a request that its worker hasn't read yet because the worker waits for a processor.
 */
export const BUSY_RACE_MS = 1_000;
/**
 * Kept connections. Enough for a second in which nothing is answered, so that no request waits here for a connection.
 */
const KEPT = 32;

class Lost extends Error {
  readonly wasConnected: boolean;
  readonly wasClosed: boolean;

  constructor(message: string, { wasConnected, wasClosed }: { wasConnected: boolean; wasClosed: boolean }) {
    super(message);
    this.wasConnected = wasConnected;
    this.wasClosed = wasClosed;
  }
}

/**
 * Sends `perSecond` requests a second until `end()`, each on time, whether or not earlier ones were answered. Half are
 * POSTs with a body, and of both kinds half are on kept connections. Like the edge (docs/gateway.md), it sends a
 * request again, at most once, if no connection was made. It does the same for a GET whose connection was lost without
 * an answer.
 */
export function startEdgeLoad(
  target: () => LoadTarget,
  host: string,
  perSecond: number,
  { raceMs = RACE_MS }: { readonly raceMs?: number } = {},
) {
  // The connection that was idle for longest is used first, so that none is idle for long.
  const pool = { keepAlive: true, maxSockets: KEPT, scheduling: 'fifo' } as const;
  const plain = new http.Agent(pool);
  const secure = new https.Agent(pool);
  const failures: LoadFailure[] = [];
  const answered: EdgeLoadReport['answered'][number][] = [];
  const used = new WeakSet<object>();
  let again = 0;
  let raced = 0;

  /** Resolves to the status; rejects with a `Lost` if there is none. */
  function ask(number: number, isKept: boolean, signal: AbortSignal): Promise<number> {
    const { address, port, servername } = target();
    const isPost = isPostOf(number);
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const own = {
      host: address,
      port,
      method: isPost ? 'POST' : 'GET',
      path: `/g/collect?v=2&n=${number}`,
      headers: { host },
      signal,
    };
    const request =
      servername === undefined
        ? http.request({ ...own, agent: isKept ? plain : false })
        : https.request({ ...own, servername, rejectUnauthorized: false, agent: isKept ? secure : false });
    let wasReused = false;
    let connectedAt: number | null = null;
    request.on('socket', (socket) => {
      const connected = () => {
        connectedAt = performance.now();
        used.add(socket);
      };
      wasReused = used.has(socket);
      const event = (socket as TLSSocket).encrypted ? 'secureConnect' : 'connect';
      if (wasReused) connected();
      else socket.once(event, connected);
    });
    const lost = (error: NodeJS.ErrnoException) =>
      reject(
        new Lost(error.message, {
          wasConnected: connectedAt !== null,
          wasClosed: wasReused && performance.now() - (connectedAt ?? 0) < raceMs,
        }),
      );
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', lost);
    });
    request.on('error', lost);
    request.end(isPost ? `en=purchase&n=${number}&${'x'.repeat(2_000)}` : undefined);
    return promise;
  }

  async function one(number: number): Promise<void> {
    const started = performance.now();
    const at = loop.now();
    const signal = AbortSignal.timeout(LIMIT_MS);
    let isSecond = false;
    const attempt = async (): Promise<number> => {
      try {
        return await ask(number, !isSecond && number % 4 < 2, signal);
      } catch (error) {
        if (isSecond || signal.aborted || !(error instanceof Lost)) throw error;
        const canBe = !error.wasConnected || !isPostOf(number);
        if (!canBe && !error.wasClosed) throw error;
        isSecond = true;
        if (canBe) again += 1;
        else raced += 1;
        return await attempt();
      }
    };
    try {
      const status = await attempt();
      if (status < 200 || status > 299) throw new Error(`status ${status}`);
      answered.push({ at, ms: performance.now() - started, again: isSecond });
    } catch (error) {
      const wasConnected = !(error instanceof Lost) || error.wasConnected;
      const ms = (performance.now() - started).toFixed(0);
      const reason = `${isPostOf(number) ? 'POST' : 'GET'}: ${(error as Error).message} after ${ms} ms`;
      const canBeSentAgain = !wasConnected || !isPostOf(number);
      const isBehind = signal.aborted || !(error instanceof Lost);
      failures.push({ number, canBeSentAgain, isBehind, at, reason });
    }
  }

  const loop = startOpenLoop({ perSecond }, one);
  return {
    now: loop.now,
    /** Resolves when every request was answered or has failed. */
    async end(): Promise<EdgeLoadReport> {
      const sent = await loop.end();
      plain.destroy();
      secure.destroy();
      return { sent, failures, again, raced, answered };
    },
  };
}

const isPostOf = (number: number) => number % 2 === 0;

/** The quantile `part` of the milliseconds to an answer, for requests begun from `from` to `to` (seconds). */
export function answeredWithin(
  { answered }: EdgeLoadReport,
  part: number,
  { from = 0, to = Number.POSITIVE_INFINITY }: { from?: number; to?: number } = {},
): number {
  const times = answered.filter(({ at }) => at >= from && at < to).map(({ ms }) => ms);
  return times.toSorted((a, b) => a - b)[Math.ceil(part * times.length) - 1] ?? Number.NaN;
}

/** One line for the output of a test or a bench. */
export function renderLoad({ sent, failures, again, raced, answered }: EdgeLoadReport): string {
  const slowest = Math.max(0, ...answered.map(({ ms }) => ms));
  const reasons = Map.groupBy(failures, ({ reason }) => reason.replace(/\d+ ms/, '… ms'));
  const shown = [...reasons]
    .map(([reason, all]) => {
      const begun = all.map(({ at }) => at);
      const [from, to] = [Math.min(...begun).toFixed(0), Math.max(...begun).toFixed(0)];
      return `${all.length} × ${reason} (begun at ${from} to ${to} s)`;
    })
    .join(', ');
  const counts = `${failures.length} of ${sent} failed, ${again} sent again, ${raced} raced`;
  return `${counts}, slowest ${slowest.toFixed(0)} ms${shown === '' ? '' : `: ${shown}`}`;
}
