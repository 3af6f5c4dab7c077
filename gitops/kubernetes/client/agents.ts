import { createSecureContext } from 'node:tls';
import type { Agent, Dispatcher, ProxyAgent } from 'undici';
import type { ClusterConfig, Credentials, TlsMaterial } from './config.ts';

/**
 * The timeout of a call, from its sending to the end of its answer. A webhook in the cluster may take 30 s of this
 * time.
 */
export const CALL_MS = 40_000;
/** The most calls at once; further ones wait for a connection. Watches have connections of their own. */
export const CONNECTIONS = 8;
const CONNECT_MS = 10_000;
/** TCP probes an idle connection after this time; after ten probes without answer, a second apart, it is given up. */
const KEEPALIVE_MS = 15_000;
const IDLE_MS = 30_000;

/** The connections of one set of certificates, and the headers of each request. */
export class Agents {
  readonly headers: Credentials['headers'];
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  readonly #tls: string;

  private constructor(credentials: Credentials, calls: Dispatcher, watches: Dispatcher) {
    this.headers = credentials.headers;
    this.calls = calls;
    this.watches = watches;
    this.#tls = fingerprint(credentials.tls);
  }

  static async with(config: ClusterConfig, credentials: Credentials, known: Agents | null): Promise<Agents> {
    if (known !== null && known.#tls === fingerprint(credentials.tls)) {
      return new Agents(credentials, known.calls, known.watches);
    }
    const { Agent: DirectAgent, ProxyAgent: TunnelAgent } = await import('undici');
    const connect = {
      ...credentials.tls,
      // One for all connections: otherwise each would read the certificates again.
      secureContext: createSecureContext(credentials.tls),
      timeout: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelay: KEEPALIVE_MS,
    };
    const create = (options: Agent.Options): Agent | ProxyAgent =>
      config.proxy === null
        ? new DirectAgent({ ...options, connect })
        : new TunnelAgent({ ...options, uri: config.proxy, requestTls: connect });
    // HTTP/1.1: each watch has its own connection, so one that stalls or breaks affects no other.
    const common = { allowH2: false, keepAliveTimeout: IDLE_MS, headersTimeout: CALL_MS };
    const calls = create({ ...common, connections: CONNECTIONS, bodyTimeout: CALL_MS });
    // The watch itself decides how long it waits for the next event.
    const watches = create({ ...common, bodyTimeout: 0 });
    return new Agents(credentials, calls, watches);
  }

  isSameConnection(other: Agents): boolean {
    return this.calls === other.calls;
  }

  async close(): Promise<void> {
    await Promise.all([this.calls.close(), this.watches.close()]);
  }

  async destroy(): Promise<void> {
    await Promise.all([this.calls.destroy(), this.watches.destroy()]);
  }
}

const fingerprint = (tls: TlsMaterial): string => JSON.stringify(tls);
