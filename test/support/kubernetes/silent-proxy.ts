import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/**
 * A TCP proxy that can become silent: it keeps its connections and passes nothing on, like a balancer that is still
 * there while the network behind it drops all packets.
 */
export class SilentProxy implements AsyncDisposable {
  readonly #server = createServer((socket) => this.#forward(socket));
  readonly #target: { readonly host: string; readonly port: number };
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  #isSilent = false;
  /** Connections that were accepted since the start. */
  accepted = 0;

  private constructor(target: { readonly host: string; readonly port: number }) {
    this.#target = target;
  }

  static async to(url: string): Promise<SilentProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new SilentProxy({ host: hostname, port: Number(port) });
    await once(proxy.#server.listen({ port: 0, host: '127.0.0.1' }), 'listening');
    return proxy;
  }

  get port(): number {
    const address = this.#server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
    return address.port;
  }

  /** Existing connections no longer pass anything on; new ones do. */
  silence(): void {
    for (const pair of this.#pairs) for (const socket of pair) socket.pause().removeAllListeners('data');
  }

  /** Until `reopen`, new connections pass nothing on either. */
  silenceAll(): void {
    this.#isSilent = true;
    this.silence();
  }

  reopen(): void {
    this.#isSilent = false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #forward(client: Socket): void {
    this.accepted += 1;
    const server = connect(this.#target);
    const pair = [client, server] as const;
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [server, client] as const]) {
      if (!this.#isSilent) from.on('data', (chunk) => to.write(chunk));
      from.on('error', () => to.destroy());
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
    }
  }
}
