import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import type { Cluster } from './cluster.ts';

interface Kubeconfig {
  readonly clusters: readonly { readonly name: string; readonly cluster: { readonly server: string } }[];
}

/** A way to a cluster's API server that can be cut: connections end, and new ones are refused. */
export class ApiGate {
  /** Leads through the gate. */
  readonly kubeconfig: string;
  readonly #target: URL;
  readonly #port: number;
  readonly #sockets = new Set<Socket>();
  #server: Server;

  private constructor({ kubeconfig, target, server }: { kubeconfig: string; target: URL; server: Server }) {
    this.kubeconfig = kubeconfig;
    this.#target = target;
    this.#server = server;
    this.#port = (server.address() as AddressInfo).port; // it listens on TCP
    this.#accept();
  }

  /** `kubeconfig`: the file whose account connects; default: the administrator's. */
  static async open(cluster: Cluster, kubeconfig: string = cluster.kubeconfig): Promise<ApiGate> {
    const config = JSON.parse(await readFile(kubeconfig, 'utf8')) as Kubeconfig; // the cluster wrote it
    const target = new URL(config.clusters[0]?.cluster.server ?? '');
    const server = await listen(0);
    const { port } = server.address() as AddressInfo; // it listens on TCP
    const file = join(cluster.folder, `gate-${port}.kubeconfig`);
    const clusters = config.clusters.map(({ name, cluster: own }) => ({
      name,
      cluster: {
        ...own,
        server: `https://127.0.0.1:${port}`,
        'tls-server-name': 'kubernetes.default.svc',
      },
    }));
    await writeFile(file, JSON.stringify({ ...config, clusters }));
    return new ApiGate({ kubeconfig: file, target, server });
  }

  cut(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  async heal(): Promise<void> {
    this.#server = await listen(this.#port);
    this.#accept();
  }

  #accept(): void {
    this.#server.on('connection', (socket) => {
      const onward = connect(Number(this.#target.port), this.#target.hostname);
      for (const [from, to] of [
        [socket, onward],
        [onward, socket],
      ] as const) {
        this.#sockets.add(from);
        from.on('error', () => to.destroy());
        from.on('close', () => {
          this.#sockets.delete(from);
          to.destroy();
        });
        from.pipe(to);
      }
    });
  }
}

async function listen(port: number): Promise<Server> {
  const server = createServer();
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
