import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Forwards TCP connections to a port on 127.0.0.1, and can hold back what the server answers. */
interface HoldingRelay extends AsyncDisposable {
  readonly port: number;
  /**
   * Holds back all that the server sends from now on, also over new connections. Resolves once the client has sent
   * something.
   */
  hold(): Promise<void>;
  /** Lets everything through, also what was held back. */
  release(): void;
}

export async function startHoldingRelay(target: number): Promise<HoldingRelay> {
  const pairs = new Set<readonly [client: Socket, server: Socket]>();
  let held: PromiseWithResolvers<void> | null = null;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    const pair = [client, upstream] as const;
    pairs.add(pair);
    client.pipe(upstream);
    client.on('data', () => held?.resolve());
    if (held === null) upstream.pipe(client);
    for (const socket of pair) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        pairs.delete(pair);
        for (const each of pair) each.destroy();
      });
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
  return {
    port,
    async hold() {
      held = Promise.withResolvers();
      for (const [client, upstream] of pairs) {
        upstream.unpipe(client);
        upstream.pause();
      }
      await held.promise;
    },
    release() {
      held = null;
      for (const [client, upstream] of pairs) upstream.pipe(client);
    },
    async [Symbol.asyncDispose]() {
      for (const pair of pairs) for (const socket of pair) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
