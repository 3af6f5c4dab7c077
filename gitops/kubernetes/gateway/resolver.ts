import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type Server, type Socket as TcpSocket } from 'node:net';
import { answerTo, type DnsQuery, RCODE, readQuery, TYPE_A } from './dns-message.ts';

/** The last label of the names that are answered: `<service>.<namespace>.peers`. */
export const ZONE = 'peers';

/**
 * nginx compares whole seconds: it keeps an answer with a TTL of 0 until the end of the current second, and one
 * with a TTL of 1 for up to two seconds.
 */
const SECONDS = 0;
const LOOPBACK = '127.0.0.1';
const NAME = new RegExp(`^(?<service>[a-z0-9-]{1,63})\\.(?<namespace>[a-z0-9-]{1,63})\\.${ZONE}$`);
/** A longer message over TCP isn't a query of nginx. */
const MOST_BYTES = 512;
const IDLE_MS = 5_000;

/**
 * The addresses of the peers of a service (`<namespace>/<name>`). May resolve late: when the service has its first pod.
 */
type Lookup = (service: string) => readonly string[] | Promise<readonly string[]>;

/** Answers nginx's queries for the addresses of pods, on the loopback address over UDP and TCP. */
export class PeerResolver {
  readonly #lookup: Lookup;
  readonly #udp: Socket = createSocket('udp4');
  readonly #tcp: Server = createServer((socket) => this.#serve(socket));
  readonly #open = new Set<TcpSocket>();

  constructor(lookup: Lookup) {
    this.#lookup = lookup;
    this.#udp.on('message', (message, { address, port }) => {
      const query = readQuery(message);
      if (query === null) return;
      void this.#answer(query, true).then((answer) => {
        // It is no error if the client is gone.
        if (!this.#closed) this.#udp.send(answer, port, address, () => undefined);
      });
    });
  }

  #closed = false;

  /** Listens on the port, the same one for UDP and TCP; 0: a free one. Resolves to the port. */
  async listen(port: number): Promise<number> {
    this.#tcp.listen(port, LOOPBACK);
    await once(this.#tcp, 'listening');
    const bound = this.#tcp.address();
    if (bound === null || typeof bound === 'string') throw new Error('the resolver has no port');
    this.#udp.bind(bound.port, LOOPBACK);
    await once(this.#udp, 'listening');
    return bound.port;
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const socket of this.#open) socket.destroy();
    const ends = [once(this.#tcp, 'close'), once(this.#udp, 'close')];
    this.#tcp.close();
    this.#udp.close();
    await Promise.all(ends);
  }

  async #answer(query: DnsQuery, overUdp: boolean): Promise<Buffer> {
    const found = NAME.exec(query.name)?.groups;
    const none = { addresses: [], seconds: SECONDS };
    if (found === undefined) return answerTo(query, { code: RCODE.refused, ...none }, overUdp);
    if (query.type !== TYPE_A) return answerTo(query, { code: RCODE.none, ...none }, overUdp);
    try {
      const addresses = await this.#lookup(`${found.namespace}/${found.service}`);
      const code = addresses.length === 0 ? RCODE.nameError : RCODE.none;
      return answerTo(query, { code, addresses, seconds: SECONDS }, overUdp);
    } catch {
      return answerTo(query, { code: RCODE.serverFailure, ...none }, overUdp);
    }
  }

  /** Over TCP, each message follows its length (RFC 1035, 4.2.2). */
  #serve(socket: TcpSocket): void {
    this.#open.add(socket);
    let kept = Buffer.alloc(0);
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    socket.on('error', () => undefined);
    socket.on('close', () => this.#open.delete(socket));
    socket.on('data', (data: Buffer) => {
      kept = Buffer.concat([kept, data]);
      while (kept.length >= 2) {
        const length = kept.readUInt16BE(0);
        if (length > MOST_BYTES) return void socket.destroy();
        if (kept.length < 2 + length) return;
        const query = readQuery(kept.subarray(2, 2 + length));
        kept = kept.subarray(2 + length);
        if (query === null) return void socket.destroy();
        void this.#answer(query, false).then((answer) => {
          const size = Buffer.alloc(2);
          size.writeUInt16BE(answer.length);
          if (!socket.destroyed) socket.write(Buffer.concat([size, answer]));
        });
      }
    });
  }
}
