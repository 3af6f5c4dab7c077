import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { RetryableError } from '../../base/errors.ts';
import type { Endpoint } from './runtime.ts';

export interface DoorOptions {
  /** Where it listens, and where it leads. */
  readonly at: Endpoint;
  readonly to: Endpoint;
  /** Resolves when somebody answers there; the visitor waits at the door until then. */
  readonly open: () => Promise<void>;
  /** Nobody has been connected for `idleMs`. Called again only after somebody was. */
  readonly onIdle: () => void;
  readonly idleMs: number;
}

export interface Door {
  /** Somebody is connected. */
  isVisited(): boolean;
  /** Cuts everybody off. */
  close(): Promise<void>;
}

/**
 * Listens in the place of a server that may not be running: takes each connection, has the server started, and hands
 * the bytes on both ways. Knows nothing of HTTP. Throws `RetryableError` where the place is taken.
 */
export async function openDoor({ at, to, open, onIdle, idleMs }: DoorOptions): Promise<Door> {
  const visitors = new Set<Socket>();
  let timer: NodeJS.Timeout | undefined;
  const restart = () => {
    clearTimeout(timer);
    // The process may end while nobody has come.
    if (visitors.size === 0) timer = setTimeout(onIdle, idleMs).unref();
  };

  async function lead(visitor: Socket): Promise<void> {
    await open();
    if (visitor.destroyed) return;
    const inside = connect({ host: to.address, port: to.port, allowHalfOpen: true });
    await pipeline(visitor, inside, visitor);
  }

  // What a visitor says before somebody answers stays in the kernel.
  const server = createServer({ pauseOnConnect: true, allowHalfOpen: true, noDelay: true }, (visitor) => {
    visitors.add(visitor);
    clearTimeout(timer);
    visitor.once('close', () => {
      visitors.delete(visitor);
      restart();
    });
    visitor.on('error', () => visitor.destroy());
    // Nobody will answer: the proxy in front says so.
    lead(visitor).catch(() => visitor.destroy());
  });
  server.listen(at.port, at.address);
  try {
    await once(server, 'listening');
  } catch (cause) {
    throw new RetryableError(`${at.address}:${at.port} can’t be listened on: ${String(cause)}`, { cause });
  }
  restart();

  return {
    isVisited: () => visitors.size > 0,
    async close() {
      clearTimeout(timer);
      for (const visitor of visitors) visitor.destroy();
      server.close();
      await once(server, 'close');
      clearTimeout(timer);
    },
  };
}
