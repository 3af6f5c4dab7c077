import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { retryAfterSeconds } from '../../../gitops/clients/cloudflare-transport.ts';
import { unreachable } from '../not-tried.ts';

interface MeterOptions {
  /** The real API's base URL. */
  readonly upstream: string;
  /** The real token. Callers send `standIn` in its place, so no behaviour can print the real one. */
  readonly token: string;
  readonly standIn: string;
  /** Why a call must not be made, or `null`. */
  readonly objection: (method: string, path: string, body: string) => Promise<string | null>;
  readonly onAnswer: (json: unknown) => void;
}

export interface Answer {
  readonly status: number;
  readonly json: unknown;
  /** Seconds. */
  readonly retryAfter: number | undefined;
}

/** The timeout of the whole exchange. */
const TIMEOUT_MS = 60_000;
/** Headers of a single connection, and of the encoded body, which `fetch` has already decoded. */
const NOT_PASSED = ['connection', 'content-encoding', 'content-length', 'keep-alive', 'transfer-encoding'];
const NOT_SENT = [...NOT_PASSED, 'host', 'accept-encoding', 'expect'];

/**
 * Starts a proxy of the API on loopback, which every client of the behaviours calls. It counts the calls and refuses
 * those that the run could not undo; after `drain`, only `call` still reaches the API.
 */
export async function startMeter({ upstream, token, standIn, objection, onAnswer }: MeterOptions) {
  const base = new URL(upstream);
  const running = new Set<Promise<void>>();
  let calls = 0;
  let isDrained = false;
  let lost: string | null = null;

  async function pass(method: string, url: string, init: { headers: Headers; body: Buffer }) {
    calls += 1;
    const { headers, body } = init;
    try {
      const response = await fetch(new URL(url, base), {
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
      });
      return { response, bytes: Buffer.from(await response.arrayBuffer()) };
    } catch (error) {
      lost = unreachable(base.host, error);
      throw new Error(lost, { cause: error });
    }
  }

  async function objectionTo(...call: Parameters<typeof objection>): Promise<string | null> {
    try {
      return await objection(...call);
    } catch (error) {
      lost ??= error instanceof Error ? error.message : String(error);
      throw error;
    }
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '/' } = request;
    const body = Buffer.concat(await request.toArray());
    const path = url.slice(base.pathname.length).split('?')[0] ?? '';
    const reason = isDrained ? 'the run has ended' : await objectionTo(method, path, body.toString());
    if (reason !== null) {
      const errors = [{ code: 1000, message: `not sent: ${reason}` }];
      response.writeHead(403, { 'content-type': 'application/json' });
      return void response.end(JSON.stringify({ success: false, errors, messages: [], result: null }));
    }
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headersDistinct)) {
      if (!NOT_SENT.includes(name)) for (const one of value ?? []) headers.append(name, one);
    }
    const authorization = headers.get('authorization');
    if (authorization === `Bearer ${standIn}`) headers.set('authorization', `Bearer ${token}`);
    const { response: answer, bytes } = await pass(method, url, { headers, body });
    if (method !== 'GET') onAnswer(parseJson(bytes));
    for (const [name, value] of answer.headers) {
      if (!NOT_PASSED.includes(name)) response.appendHeader(name, value);
    }
    response.writeHead(answer.status).end(bytes);
  }

  const server = createServer((request, response) => {
    const work = handle(request, response).catch(() => void response.destroy());
    running.add(work);
    work.finally(() => running.delete(work));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // it listens on TCP

  return {
    url: `http://127.0.0.1:${port}${base.pathname}`,
    calls: () => calls,
    /** Why the calls since the last `lost` prove nothing about the API; `null` if all were answered. */
    lost(): string | null {
      const reason = lost;
      lost = null;
      return reason;
    },
    /** A call of the run itself. Rejects where there is no answer. */
    async call(method: string, path: string): Promise<Answer> {
      const headers = new Headers({ authorization: `Bearer ${token}` });
      const { response, bytes } = await pass(method, `${base.pathname}${path}`, {
        headers,
        body: Buffer.of(),
      });
      const retryAfter = retryAfterSeconds(response.headers, Date.now());
      return { status: response.status, json: parseJson(bytes), retryAfter };
    },
    /** Refuses further calls, and waits for those under way. */
    async drain(): Promise<void> {
      isDrained = true;
      await Promise.all(running);
    },
    async close(): Promise<void> {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}
