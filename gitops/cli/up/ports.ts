import { freePort } from '../../../base/free-port.ts';
import { CliError } from '../output/cli-error.ts';

const HOST = '127.0.0.1';

/** A port that the instance listens on: requested by an environment variable or a default, or picked and remembered. */
interface PortRequest {
  readonly name: string;
  /** The variable that requests it. A port that has no such variable is always picked. */
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
 * Assigns every port. 0 picks a free one: the remembered one if it is free, so that addresses in manifests, snippets
 * and bookmarks survive a restart. Throws `CliError` if a requested port is in use, or if the system refuses it.
 */
export async function assignPorts(
  env: NodeJS.ProcessEnv,
  remembered: Readonly<Record<string, number>>,
): Promise<{ ports: Ports; remember: Record<string, number> }> {
  const ports: Partial<Ports> = {};
  const remember: Record<string, number> = {};
  const taken = new Set<number>();
  // Object.entries widens the keys.
  const requests = (Object.entries(PORTS) as [keyof Ports, PortRequest][]).map(([key, request]) => ({
    key,
    variable: request.variable,
    requested: readPort(env, request),
  }));
  // Those that are requested come first, so that none of them is picked for another part.
  const rank = ({ requested }: { requested: number }) => (requested === 0 ? 1 : 0);
  for (const { key, variable, requested } of requests.toSorted((one, two) => rank(one) - rank(two))) {
    const before = remembered[key];
    let port = requested;
    if (requested === 0)
      port =
        before !== undefined && !taken.has(before) && (await isFree(before).catch(() => false))
          ? before
          : await pick(taken);
    else if (taken.has(requested) || !(await isFree(requested))) {
      throw new CliError(
        `port ${requested} (${variable}) is in use; stop the process that uses it, or set ${variable} to another port (0: any)`,
      );
    }
    if (requested === 0) remember[key] = port;
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
    throw new CliError(`${variable}=${text} is not a port; set it to a number from 0 (any) to 65535`);
  }
  return port;
}

async function pick(taken: ReadonlySet<number>): Promise<number> {
  for (;;) {
    const port = await freePort(HOST, 0);
    if (port !== null && !taken.has(port)) return port;
  }
}

/** Throws `CliError` if the system refuses the port although it is not in use (`EACCES`). */
async function isFree(port: number): Promise<boolean> {
  try {
    return (await freePort(HOST, port)) !== null;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`port ${port} can't be used: ${reason}`, { cause });
  }
}
