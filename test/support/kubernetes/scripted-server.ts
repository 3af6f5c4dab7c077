import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { ClusterConfig } from '../../../gitops/kubernetes/client/config.ts';

export type Answerer = (request: IncomingMessage, response: ServerResponse) => void;

/** A server that gives the answers of a list in order, one to each request, and then repeats the last one. */
export class ScriptedServer implements AsyncDisposable {
  /** The requests so far. */
  readonly seen: { readonly url: URL; readonly authorization: string | undefined }[] = [];
  /** A client's configuration for it. The token changes after each refusal. */
  readonly config: ClusterConfig;
  readonly #server;

  private constructor(server: ReturnType<typeof createServer>, url: URL) {
    this.#server = server;
    let token = 0;
    this.config = {
      server: url,
      proxy: null,
      credentials: async () => ({ tls: {}, headers: { authorization: `token ${token}` } }),
      forget: () => {
        token += 1;
      },
    };
  }

  static async start(...answers: readonly Answerer[]): Promise<ScriptedServer> {
    const server = createServer();
    await once(server.listen({ port: 0, host: '127.0.0.1' }), 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the server has no port');
    const scripted = new ScriptedServer(server, new URL(`http://127.0.0.1:${address.port}`));
    server.on('request', (request, response) => {
      const answer = answers[Math.min(scripted.seen.length, answers.length - 1)];
      const url = new URL(request.url ?? '/', scripted.config.server);
      scripted.seen.push({ url, authorization: request.headers.authorization });
      answer?.(request, response);
    });
    return scripted;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
