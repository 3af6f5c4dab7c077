import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver of webhooks on loopback. `answer` decides the status; `null`: it never answers. */
export class Receiver {
  readonly received: Received[] = [];
  answer: (message: Received) => number | null = () => 204;
  /** The most messages that were open at once, by container. */
  readonly overlaps = new Map<string, number>();
  url = '';
  readonly #open = new Map<string, number>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer(async (request, response) => {
      const body = await text(request);
      const message = { path: request.url ?? '', headers: request.headers, body };
      const container = JSON.parse(body).data.containerId ?? 'none';
      const open = (this.#open.get(container) ?? 0) + 1;
      this.#open.set(container, open);
      this.overlaps.set(container, Math.max(open, this.overlaps.get(container) ?? 0));
      this.received.push(message);
      const status = this.answer(message);
      setImmediate(() => {
        this.#open.set(container, (this.#open.get(container) ?? 1) - 1);
        if (status === null) return;
        response.writeHead(status, status >= 300 && status < 400 ? { location: '/elsewhere' } : {}).end();
      });
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`; // it listens on a port
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  /** Ids of the events that arrived at a path, in order. */
  events(path = '/'): string[] {
    return this.received.filter((one) => one.path === path).map(({ body }) => JSON.parse(body).data.id);
  }
}
