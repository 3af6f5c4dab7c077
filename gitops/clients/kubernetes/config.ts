import { existsSync, readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { parse as parseYaml } from 'yaml';
import { z } from 'zod';
import { TerminalError } from '../../base/errors.ts';
import { missingPackages } from '../../base/runtime/optional.ts';

/** Loaded only where a cluster is used: it takes half a second, and 50 MB. */
const PACKAGE = '@kubernetes/client-node';
const ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

/** Which cluster, and as whom. */
export interface ClusterAccess {
  /** Paths as in KUBECONFIG. Default: the account of the pod that runs this, else `~/.kube/config`. */
  readonly kubeconfig?: string | undefined;
  /** Default: the file's current one. */
  readonly context?: string | undefined;
}

/** What TLS needs; the server's certificate is checked unless the kubeconfig says otherwise. */
export interface TlsMaterial {
  readonly ca?: string | Buffer;
  readonly cert?: string | Buffer;
  readonly key?: string | Buffer;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** What each request needs. */
export interface Credentials {
  readonly tls: TlsMaterial;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ClusterConfig {
  /** Origin, and a path if the API server is below one. */
  readonly server: URL;
  readonly proxy: string | null;
  /** The context's namespace. */
  readonly namespace: string | null;
  /** Files are read and programs are run as they are now: tokens and certificates are replaced while a process runs. */
  credentials(): Promise<Credentials>;
  /** The credentials were refused: what is kept of files and programs is read again. */
  forget(): void;
}

/** Throws `TerminalError` with what to set. */
export async function readClusterConfig(access: ClusterAccess): Promise<ClusterConfig> {
  if (missingPackages([PACKAGE]).length > 0) {
    throw new TerminalError(
      `Kubernetes: ${PACKAGE} is not installed; install it: npm install --include=optional`,
    );
  }
  const { KubeConfig: Config } = await import('@kubernetes/client-node');
  const read = () => load(new Config(), () => new Config(), access);
  let config = read();
  const cluster = config.getCurrentCluster();
  if (cluster === null || config.getCurrentUser() === null) {
    const names = config.getContexts().map(({ name }) => name);
    throw new TerminalError(
      `Kubernetes: the context ${config.getCurrentContext() ?? '(none)'} is incomplete or missing; there are ${names.join(', ') || 'none'}. Set KUBERNETES_CONTEXT`,
    );
  }
  return {
    server: new URL(cluster.server),
    proxy: cluster.proxyUrl ?? null,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? null,
    credentials: () => credentialsOf(config),
    forget() {
      config = read();
    },
  };
}

function load(
  config: KubeConfig,
  create: () => KubeConfig,
  { kubeconfig, context }: ClusterAccess,
): KubeConfig {
  const standard = join(homedir(), '.kube', 'config');
  try {
    if (kubeconfig !== undefined) {
      const [first, ...others] = kubeconfig.split(delimiter).filter(Boolean);
      loadFile(config, first ?? '');
      for (const path of others) {
        const other = create();
        loadFile(other, path);
        config.mergeConfig(other, true);
      }
    } else if (existsSync(ACCOUNT_TOKEN)) {
      config.loadFromCluster();
    } else if (existsSync(standard)) {
      loadFile(config, standard);
    } else {
      throw new Error(`this is no pod with an account, and there is no ${standard}`);
    }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TerminalError(`Kubernetes: no usable configuration: ${why}. Set KUBECONFIG`, { cause });
  }
  if (context !== undefined) config.setCurrentContext(context);
  return config;
}

const tokenFiles = z.object({
  users: z.array(
    z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() }),
  ),
});

/** KubeConfig knows `tokenFile` only as a provider of its own. */
function loadFile(config: KubeConfig, path: string): void {
  config.loadFromFile(path);
  const read = tokenFiles.safeParse(parseYaml(readFileSync(path, 'utf8')));
  for (const { name, user } of read.data?.users ?? []) {
    if (user?.tokenFile === undefined) continue;
    const tokenFile = resolve(dirname(path), user.tokenFile);
    const index = config.users.findIndex((one) => one.name === name);
    const known = config.users[index];
    if (known !== undefined) {
      config.users[index] = { ...known, authProvider: { name: 'tokenFile', config: { tokenFile } } };
    }
  }
}

async function credentialsOf(config: KubeConfig): Promise<Credentials> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = String(value).trim();
  if (typeof options.auth === 'string') {
    headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
  }
  const { ca, cert, key, servername, rejectUnauthorized } = options;
  return {
    headers,
    tls: {
      ...(isPem(ca) && { ca }),
      ...(isPem(cert) && { cert }),
      ...(isPem(key) && { key }),
      ...(servername !== undefined && { servername }),
      ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
    },
  };
}

const isPem = (value: unknown): value is string | Buffer =>
  typeof value === 'string' || Buffer.isBuffer(value);
