import type { IncomingHttpHeaders } from 'node:http';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { TerminalError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import { Agents, CALL_MS, CONNECTIONS } from './agents.ts';
import type { ClusterConfig } from './config.ts';
import { faultOfAnswer, faultReason, KubernetesRetryable } from './errors.ts';
import { parsed } from './object-text.ts';
import { untilAborted } from './until-aborted.ts';

/** Certificates and tokens are read again after this time. client-go does it once a minute. */
const CREDENTIALS_MS = 30_000;
const TRIES = 4;
/**
 * How many octets of a watch are read ahead. A watch that gathers events reads once in `gatherMs`: with undici's
 * default of 64 KiB, it would fall behind during a thousand rollouts.
 */
const WATCH_BUFFER_OCTETS = 4 * 1024 * 1024;
/** If the API server asks for a longer pause, the call isn't repeated, and the caller gets the error. */
const LONGEST_PAUSE_SECONDS = 5;

export interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The type of the body. Default: JSON. */
  readonly contentType?: string;
  /** Default: JSON. */
  readonly accept?: string;
  /** What errors call it, for example `apply Deployment a/b`. */
  readonly what: string;
  /** Two tries have the same effect as one, so the call is repeated if its connection ends. */
  readonly isRepeatable: boolean;
  readonly signal: AbortSignal;
}

interface Answer {
  /** JSON; `null`: it is none. */
  readonly body: unknown;
  readonly warnings: readonly string[];
}

/** Sends requests to the API server, with the credentials as they are now. */
export class Transport {
  readonly #config: ClusterConfig;
  readonly #clock: Clock;
  #agents: Promise<Agents> | null = null;
  #readAt = Number.NEGATIVE_INFINITY;
  #isSuspect = false;
  readonly #limit = limit(CONNECTIONS);

  readonly #callMs: number;

  constructor(config: ClusterConfig, clock: Clock = systemClock, callMs = CALL_MS) {
    this.#config = config;
    this.#clock = clock;
    this.#callMs = callMs;
  }

  /**
   * One call with its answer. It is sent again if the API server says that it did nothing (429, and 5xx with
   * `Retry-After`), or if the connection ended without an answer and the call is repeatable. If the credentials are
   * refused, they are read again, and the call is sent once more.
   */
  async call(call: Call): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        // The timeout doesn't count the wait for our other calls: thousands may be made at once.
        return await untilAborted(
          this.#limit(() => this.#once(call)),
          [call.signal],
        );
      } catch (error) {
        const pause = tries < TRIES && !call.signal.aborted ? pauseBefore(error, call) : null;
        if (pause === null) throw error;
        if (faultReason(error) === 'unauthorized') {
          if (tries > 1) throw error;
          this.#forget();
        }
        await this.#clock.sleep(pause * 1000, { signal: call.signal });
      }
    }
  }

  /** The open answer of a watch, to be read until its end. It must be read or aborted. */
  async stream(call: Call): Promise<AsyncIterable<Buffer>> {
    try {
      const agents = await this.#current();
      const request = agents.watches.request({
        ...this.#request(call, agents),
        highWaterMark: WATCH_BUFFER_OCTETS,
        signal: call.signal,
      });
      // While the connection is being made, an abort doesn't end the request (but it isn't sent any more).
      const { statusCode: status, headers, body } = await untilAborted(request, [call.signal]);
      if (status === 200) return body;
      throw refused(call, { status, headers, text: await body.text().catch(() => '') });
    } catch (error) {
      if (faultReason(error) === 'unauthorized') this.#forget();
      throw faultOfCall(call, error);
    }
  }

  /**
   * Call it when nothing more arrived on a connection. Idle connections may be dead, too, so new calls use new
   * connections; calls in progress end on the old ones.
   */
  renew(): void {
    this.#isSuspect = true;
    this.#readAt = Number.NEGATIVE_INFINITY;
  }

  async close(): Promise<void> {
    const agents = this.#agents;
    this.#agents = null;
    if (agents !== null) await (await agents.catch(() => null))?.destroy();
  }

  async #once(call: Call): Promise<Answer> {
    call.signal.throwIfAborted();
    const late = AbortSignal.timeout(this.#callMs);
    const signal = AbortSignal.any([call.signal, late]);
    try {
      const agents = await this.#current();
      const request = agents.calls.request({ ...this.#request(call, agents), signal });
      const { statusCode: status, headers, body } = await untilAborted(request, [signal]);
      const text = await body.text();
      if (status >= 300) throw refused(call, { status, headers, text });
      return { body: parsed(text), warnings: warningsOf(headers.warning) };
    } catch (error) {
      if (signal.aborted) this.renew();
      throw faultOfCall(call, late.aborted ? new Error(`none within ${this.#callMs / 1000} s`) : error);
    }
  }

  /** The request as undici takes it. */
  #request(call: Call, { headers }: Agents) {
    const { origin, pathname } = this.#config.server;
    return {
      origin,
      path: `${pathname.replace(/\/$/, '')}${call.path}${queryOf(call)}`,
      method: call.method,
      headers: {
        ...headers,
        accept: call.accept ?? 'application/json',
        'user-agent': 'tagyard',
        ...(call.body !== undefined && { 'content-type': call.contentType ?? 'application/json' }),
      },
      ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
    };
  }

  async #current(): Promise<Agents> {
    if (this.#agents !== null && this.#clock.now() - this.#readAt < CREDENTIALS_MS) return this.#agents;
    const before = this.#agents;
    this.#readAt = this.#clock.now();
    this.#agents = this.#next(before);
    try {
      return await this.#agents;
    } catch (error) {
      this.#agents = before;
      this.#readAt = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }

  async #next(before: Promise<Agents> | null): Promise<Agents> {
    const credentials = await this.#config.credentials();
    const known = await before?.catch(() => null);
    const isSuspect = this.#isSuspect;
    this.#isSuspect = false;
    const next = await Agents.with(this.#config, credentials, isSuspect ? null : (known ?? null));
    // Calls in progress end on the old connections.
    if (known !== undefined && known !== null && !known.isSameConnection(next)) void known.close();
    return next;
  }

  #forget(): void {
    this.#readAt = Number.NEGATIVE_INFINITY;
    this.#config.forget();
  }
}

/** The error of an answer that refuses the call. */
function refused(
  { what }: Call,
  { status, headers, text }: { status: number; headers: IncomingHttpHeaders; text: string },
) {
  const wait = Number(headers['retry-after']);
  return faultOfAnswer({
    what,
    status,
    body: parsed(text),
    retryAfter: Number.isFinite(wait) ? wait : undefined,
  });
}

/** Several times as fast as `URLSearchParams`. */
function queryOf({ query }: Call): string {
  if (query === undefined) return '';
  const members = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
  return `?${members.join('&')}`;
}

/** Seconds until the next try; `null`: there is none, and the caller gets the error. */
function pauseBefore(error: unknown, { isRepeatable }: Call): number | null {
  if (!(error instanceof KubernetesRetryable)) return faultReason(error) === 'unauthorized' ? 0 : null;
  if (error.reason === 'unreachable') return isRepeatable && isCutOff(error) ? 0.2 : null;
  const didNothing = error.reason === 'busy' || error.reason === 'unavailable';
  const pause = error.retryAfter ?? (error.reason === 'busy' ? 1 : undefined);
  return didNothing && pause !== undefined && pause <= LONGEST_PAUSE_SECONDS ? pause : null;
}

/** The error to throw for a call that failed with `error`, before its answer or in the middle of it. */
export function faultOfCall(call: Call, error: unknown): unknown {
  if (faultReason(error) !== null) return error;
  return call.signal.aborted ? call.signal.reason : lost(call, error);
}

/** The error for a call without an answer. */
function lost({ method, what, isRepeatable }: Call, cause: unknown): unknown {
  if (cause instanceof TerminalError) return cause;
  const { message, code } = (cause ?? {}) as { message?: string; code?: unknown };
  const outcome = method === 'GET' || isRepeatable ? '' : '; whether it was carried out is unknown';
  const why = message || String(code ?? cause);
  return new KubernetesRetryable('unreachable', `Kubernetes: ${what}: no answer: ${why}${outcome}`, {
    cause,
  });
}

/** True if the connection ended: the server may just have closed an idle connection, and then a second try succeeds. */
function isCutOff({ cause }: Error): boolean {
  const code = cause instanceof Error && 'code' in cause ? cause.code : null;
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

/** The texts of `Warning: 299 - "text"` headers (RFC 7234). */
export function warningsOf(header: string | string[] | undefined): string[] {
  const all = header === undefined ? [] : [header].flat();
  return all.flatMap((one) =>
    [...one.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map(([, text = '']) => text.replaceAll(/\\(.)/g, '$1')),
  );
}
