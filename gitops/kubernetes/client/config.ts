import { existsSync, readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node/dist/config.js';
import type { User } from '@kubernetes/client-node/dist/config_types.js';
import { parse } from 'yaml';
import { z } from 'zod';
import { TerminalError } from '../../../base/errors.ts';
import { missingPackages } from '../../../base/runtime/optional.ts';
import { withinTime } from '../../../base/time-limit.ts';
import { KubernetesRetryable } from './errors.ts';

const PACKAGE = '@kubernetes/client-node';
/** Where Kubernetes puts the credentials of a pod's service account. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
/** How long a program of a kubeconfig may take. */
const PROGRAM_MS = 30_000;

/** Which cluster, and as whom. */
export interface ClusterAccess {
  /** Paths as in KUBECONFIG. Default: the service account of the pod that runs this process, else `~/.kube/config`. */
  readonly kubeconfig?: string | undefined;
  /** Default: the current context of the file. */
  readonly context?: string | undefined;
}

/** What TLS needs, certificates and keys as PEM. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** What each request needs. */
export interface Credentials {
  readonly tls: TlsMaterial;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ClusterConfig {
  /** The API server's origin, with a path if the server is below one. */
  readonly server: URL;
  /** The URL of the HTTP proxy before the API server; `null`: there is none. */
  readonly proxy: string | null;
  /** The credentials that files and programs give now; failures are `KubernetesRetryable`. */
  credentials(): Promise<Credentials>;
  /** Forgets what files and programs have said. Call it when the credentials were refused. */
  forget(): void;
}

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly account: string;
  readonly home: string;
}

/** Throws `TerminalError` with what to set. */
export async function readClusterConfig(
  access: ClusterAccess,
  { env, account, home }: Surroundings = { env: process.env, account: ACCOUNT, home: homedir() },
): Promise<ClusterConfig> {
  const standard = join(home, '.kube', 'config');
  const paths = access.kubeconfig?.split(delimiter).filter(Boolean) ?? [];
  try {
    if (paths.length > 0) return await ofFiles(paths, access.context);
    if (existsSync(join(account, 'token'))) return ofAccount(account, env);
    if (existsSync(standard)) return await ofFiles([standard], access.context);
    throw new Error(`this process is not in a pod with a service account, and there is no ${standard}`);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TerminalError(`Kubernetes: no usable configuration: ${why}. See KUBECONFIG`, { cause });
  }
}

/** Without the package: it takes 0.5 s of processor time and 60 MB, which a gateway's pod doesn't have to spare. */
function ofAccount(folder: string, env: Surroundings['env']): ClusterConfig {
  const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc', KUBERNETES_SERVICE_PORT: port = '443' } =
    env;
  return {
    server: new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`),
    proxy: null,
    credentials: () =>
      asked(async () => {
        const [ca, token] = await Promise.all(
          ['ca.crt', 'token'].map((name) => readFile(join(folder, name), 'utf8')),
        );
        return { tls: { ...(ca && { ca }) }, headers: { authorization: `Bearer ${token?.trim()}` } };
      }),
    forget() {},
  };
}

async function ofFiles(paths: readonly string[], context: string | undefined): Promise<ClusterConfig> {
  if (missingPackages([PACKAGE]).length > 0) {
    throw new Error(
      `the package ${PACKAGE}, which reads kubeconfigs, isn't installed: npm install --include=optional`,
    );
  }
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const load = () => loaded(paths, context, () => new KubeConfig());
  let config: KubeConfig | null = load();
  const { server = '', proxyUrl } = config.getCurrentCluster() ?? {};
  if (!URL.canParse(server)) throw new Error(`${server} is not the URL of a server`);
  return {
    server: new URL(server),
    proxy: proxyUrl ?? null,
    credentials: () =>
      asked(async () => {
        config ??= load();
        const options: RequestOptions = {};
        const current = config;
        await withinTime(PROGRAM_MS, () => current.applyToHTTPSOptions(options));
        return credentialsIn(options);
      }),
    forget(): void {
      config = null;
    },
  };
}

const document = z.looseObject({
  users: z
    .array(
      z.looseObject({
        name: z.string(),
        user: z.looseObject({ tokenFile: z.string().nullish() }).nullish(),
      }),
    )
    .nullish(),
});
type Document = z.output<typeof document>;
/** Members of a user that the package ignores. Without them, the client would act as someone else. */
const UNKNOWN = ['as-uid', 'as-groups', 'as-user-extra'];

/** If several files have an item of one name, the first file's item counts, as in kubectl. */
function loaded(paths: readonly string[], context: string | undefined, create: () => KubeConfig): KubeConfig {
  const raw: Document[] = [];
  const files = paths.map((path) => {
    const read = document.safeParse(parse(readFileSync(path, 'utf8')));
    if (!read.success) throw new Error(`${path} is not a kubeconfig`);
    const file = create();
    file.loadFromFile(path);
    const folder = dirname(resolve(path));
    file.users = file.users.map((user) => usable(user, rawUser([read.data], user.name), folder));
    raw.push(read.data);
    return file;
  });
  const all = create();
  all.loadFromOptions({
    clusters: files.flatMap(({ clusters }) => clusters),
    users: files.flatMap(({ users }) => users),
    contexts: files.flatMap(({ contexts }) => contexts),
    currentContext: context ?? files.map(({ currentContext }) => currentContext).find(Boolean),
  });
  const name = all.getCurrentContext();
  if (!name) throw new Error('the kubeconfig has no current-context, and KUBERNETES_CONTEXT names none');
  const found = all.getContextObject(name);
  if (found === null) throw new Error(`it has no context ${name}`);
  if (all.getCurrentCluster() === null) throw new Error(`it has no cluster ${found.cluster}`);
  if (all.getCurrentUser() === null) throw new Error(`it has no user ${found.user}`);
  const user = rawUser(raw, found.user);
  const unknown = UNKNOWN.filter((name) => user[name] != null);
  if (unknown.length > 0) {
    throw new Error(
      `its user ${found.user} has ${unknown.join(', ')}, which isn't supported: use \`as\` alone`,
    );
  }
  return all;
}

function rawUser(documents: readonly Document[], name: string) {
  return documents.flatMap(({ users }) => users ?? []).find((one) => one.name === name)?.user ?? {};
}

/** A user with what the package doesn't know. Programs run without a terminal; one with a slash is relative to the file. */
function usable(user: User, raw: ReturnType<typeof rawUser>, folder: string): User {
  if (raw.tokenFile) {
    const { token: _, ...rest } = user;
    return {
      ...rest,
      authProvider: { name: 'tokenFile', config: { tokenFile: resolve(folder, raw.tokenFile) } },
    };
  }
  if (!user.exec) return user;
  const { command, apiVersion, env } = user.exec;
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  return {
    ...user,
    exec: {
      ...user.exec,
      command: command.includes('/') ? resolve(folder, command) : command,
      env: [...(env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
    },
  };
}

function credentialsIn({
  ca,
  cert,
  key,
  servername,
  rejectUnauthorized,
  auth,
  headers,
}: RequestOptions): Credentials {
  const tls = {
    ...{ ca: textOf(ca), cert: textOf(cert), key: textOf(key) },
    ...{ servername, rejectUnauthorized },
  };
  const sent = {
    ...(auth && { authorization: `Basic ${Buffer.from(auth).toString('base64')}` }),
    ...Object.fromEntries(
      Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), String(value).trim()]),
    ),
  };
  return {
    tls: Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
    headers: sent,
  };
}

const textOf = (pem: unknown): string | undefined => (pem ? String(pem) : undefined);

async function asked(ask: () => Promise<Credentials>): Promise<Credentials> {
  try {
    return await ask();
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.trim() : String(cause);
    throw new KubernetesRetryable('unauthorized', `Kubernetes: no credentials: ${why}`, { cause });
  }
}
