import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request that an upstream (the vendor, a tag server) received; `url` is absolute. */
export interface Received {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string;
}

/** One real HTTP server in place of all upstreams: it receives all fetches of the worker, with absolute targets. */
export interface Upstream {
  readonly port: number;
  readonly received: Received[];
  /** Decides the answers. A rejection breaks the connection. */
  reply: (request: Received) => Reply | Promise<Reply>;
  /** Handles raw requests instead of `reply`. */
  take: ((incoming: IncomingMessage, outgoing: ServerResponse) => void) | undefined;
  close(): Promise<void>;
}

export async function startUpstream(): Promise<Upstream> {
  const server: Server = createServer({ requireHostHeader: false }, async (incoming, outgoing) => {
    if (upstream.take !== undefined) return upstream.take(incoming, outgoing);
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk);
    const request: Received = {
      method: incoming.method ?? '',
      url: incoming.url ?? '',
      headers: incoming.headers,
      rawHeaders: incoming.rawHeaders,
      body: Buffer.concat(chunks).toString(),
    };
    upstream.received.push(request);
    try {
      const { status = 200, headers = {}, body = '' } = await upstream.reply(request);
      outgoing.writeHead(status, headers).end(body);
    } catch {
      outgoing.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo; // a TCP server's address is never a string
  const upstream: Upstream = {
    port,
    received: [],
    reply: () => ({}),
    take: undefined,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return upstream;
}
