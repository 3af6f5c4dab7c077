import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { RetryableError } from '../../../base/errors.ts';
import type { Endpoint } from './runtime.ts';

interface PortGateOptions {
  readonly listen: Endpoint;
  readonly target: Endpoint;
  /** Called for each connection. Resolves when the target accepts connections; the client waits until then. */
  readonly startTarget: () => Promise<void>;
  /** Called when no client has been connected for `idleMs`, once per idle period. */
  readonly onIdle: () => void;
  readonly idleMs: number;
  /** How long the gate waits for its first client before it calls `onIdle`. Default: `idleMs`. */
  readonly unusedMs?: number;
}

export interface PortGate {
  hasClients(): boolean;
  /** Stops listening and cuts all connections. */
  close(): Promise<void>;
}

/**
 * Listens in place of a server that may be stopped. For each connection, it makes sure that the server runs, and
 * forwards the bytes in both directions. It does not parse HTTP. Throws `RetryableError` if the port is in use.
 */
export async function openPortGate(options: PortGateOptions): Promise<PortGate> {
  const { listen, target, startTarget, onIdle, idleMs, unusedMs = idleMs } = options;
  const clients = new Set<Socket>();
  let idleTimer: NodeJS.Timeout | undefined;
  const restartIdleTimer = (ms: number) => {
    clearTimeout(idleTimer);
    // Unreferenced: an idle gate doesn't keep the process alive.
    if (clients.size === 0) idleTimer = setTimeout(onIdle, ms).unref();
  };

  async function forward(client: Socket): Promise<void> {
    await startTarget();
    if (client.destroyed) return;
    const upstream = connect({ host: target.address, port: target.port, allowHalfOpen: true });
    await pipeline(client, upstream, client);
  }

  // Paused: bytes that a client sends before the target is up stay in the kernel's buffer.
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (client) => {
    clients.add(client);
    clearTimeout(idleTimer);
    client.once('close', () => {
      clients.delete(client);
      restartIdleTimer(idleMs);
    });
    client.on('error', () => client.destroy());
    // If the target can't be started, the proxy in front returns the error.
    forward(client).catch(() => client.destroy());
  });
  server.listen(listen.port, listen.address);
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new RetryableError(`can’t listen on ${listen.address}:${listen.port}: ${String(cause)}`, {
      cause,
    });
  }
  restartIdleTimer(unusedMs);

  return {
    hasClients: () => clients.size > 0,
    async close() {
      clearTimeout(idleTimer);
      for (const client of clients) client.destroy();
      server.close();
      await once(server, 'close');
      clearTimeout(idleTimer);
    },
  };
}
