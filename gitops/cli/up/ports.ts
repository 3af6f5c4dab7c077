import { createServer } from 'node:net';
import { CliError } from '../output/cli-error.ts';

/** A port that the instance answers on: asked for by an environment variable, or picked and remembered. */
export interface PortRequest {
  readonly name: string;
  /** The variable that asks for it; without one it is always picked. */
  readonly variable?: string;
  readonly fallback: number;
}

export const PORTS = {
  management: { name: 'management', variable: 'MANAGEMENT_PORT', fallback: 8080 },
  provisioner: { name: 'provisioner', variable: 'PROVISIONER_PORT', fallback: 8081 },
  edge: { name: 'edge', variable: 'EDGE_PORT', fallback: 8787 },
  proxy: { name: 'proxy', variable: 'PROXY_PORT', fallback: 8088 },
  proxyTls: { name: 'proxyTls', variable: 'PROXY_TLS_PORT', fallback: 0 },
  cloudflare: { name: 'cloudflare', fallback: 0 },
  verification: { name: 'verification', fallback: 0 },
  shop: { name: 'shop', variable: 'SHOP_PORT', fallback: 0 },
  vendor: { name: 'vendor', fallback: 0 },
  issuer: { name: 'issuer', fallback: 0 },
} as const satisfies Record<string, PortRequest>;
export type Ports = Record<keyof typeof PORTS, number>;

/**
 * Settles every port. 0 picks a free one, the same as last time if it is still free, since addresses that stand in
 * manifests' results should survive a restart. Throws `CliError` where a port that was asked for is taken.
 */
export async function assignPorts(
  env: NodeJS.ProcessEnv,
  remembered: Readonly<Record<string, number>>,
): Promise<{ ports: Ports; remember: Record<string, number> }> {
  const ports: Partial<Ports> = {};
  const remember: Record<string, number> = {};
  const taken = new Set<number>();
  for (const [key, wish] of Object.entries(PORTS) as [keyof Ports, PortRequest][]) {
    // Object.entries widens the keys
    const asked = readPort(env, wish);
    const before = remembered[key];
    let port = asked;
    if (asked === 0)
      port =
        before !== undefined && !taken.has(before) && (await isFree(before)) ? before : await pick(taken);
    else if (taken.has(asked) || !(await isFree(asked))) {
      throw new CliError(
        `port ${asked} (${wish.variable}) is in use; stop what uses it, or set ${wish.variable} to another (0: any)`,
      );
    }
    if (asked === 0) remember[key] = port;
    taken.add(port);
    ports[key] = port;
  }
  return { ports: ports as Ports, remember }; // every key of PORTS was visited
}

function readPort(env: NodeJS.ProcessEnv, { variable, fallback }: PortRequest): number {
  const text = variable === undefined ? undefined : env[variable];
  if (text === undefined || text === '') return fallback;
  const port = Number(text);
  if (!Number.isInteger(port) || port < 0 || port > 65535) {
    throw new CliError(`${variable}=${text} is not a port; give a number from 0 (any) to 65535`);
  }
  return port;
}

async function pick(taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = await probe(0);
    if (port !== null && !taken.has(port)) return port;
  }
}

async function isFree(port: number): Promise<boolean> {
  return (await probe(port)) !== null;
}

/** The port that could be bound on loopback, or `null`. */
function probe(port: number): Promise<number | null> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(null));
    server.listen({ port, host: '127.0.0.1' }, () => {
      const address = server.address();
      server.close(() => resolve(address !== null && typeof address === 'object' ? address.port : null));
    });
  });
}
