import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { TerminalError } from '../../../base/errors.ts';
import { missingPackages } from '../../../base/runtime/optional.ts';
import {
  type ClusterUser,
  type Credentials,
  credentialsOf,
  type Impersonation,
  type ServerTrust,
} from './credentials.ts';

const PACKAGE = '@kubernetes/client-node';
/** Where Kubernetes puts the credentials of a pod's service account. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Which cluster, and as whom. */
export interface ClusterAccess {
  /** Paths as in KUBECONFIG. Default: the service account of the pod that runs this process, else `~/.kube/config`. */
  readonly kubeconfig?: string | undefined;
  /** Default: the current context of the file. */
  readonly context?: string | undefined;
}

export interface ClusterConfig {
  /** The API server's origin, with a path if the server is below one. */
  readonly server: URL;
  /** The URL of the HTTP proxy before the API server; `null`: there is none. */
  readonly proxy: string | null;
  /** The context's namespace. */
  readonly namespace: string | null;
  /** The credentials that files and programs give now: tokens and certificates are replaced while a process runs. */
  credentials(): Promise<Credentials>;
  /** Forgets what programs have answered. Call it when the credentials were refused. */
  forget(): void;
}

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly account: string;
  readonly home: string;
}

interface Found {
  readonly server: string;
  readonly proxy?: string | undefined;
  readonly namespace?: string | undefined;
  readonly trust: ServerTrust;
  readonly user: ClusterUser;
}

/** Throws `TerminalError` with what to set. */
export async function readClusterConfig(
  access: ClusterAccess,
  { env, account, home }: Surroundings = { env: process.env, account: ACCOUNT, home: homedir() },
): Promise<ClusterConfig> {
  const standard = join(home, '.kube', 'config');
  const paths = access.kubeconfig?.split(delimiter).filter(Boolean) ?? [];
  let found: Found;
  try {
    if (paths.length > 0) found = await ofFiles(paths, access.context);
    else if (existsSync(join(account, 'token'))) found = ofAccount(account, env);
    else if (existsSync(standard)) found = await ofFiles([standard], access.context);
    else throw new Error(`this process is not in a pod with a service account, and there is no ${standard}`);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new TerminalError(`Kubernetes: no usable configuration: ${why}. See KUBECONFIG`, { cause });
  }
  if (!URL.canParse(found.server))
    throw new TerminalError(`Kubernetes: ${found.server} is not the URL of a server`);
  const { ask, forget } = credentialsOf(found.user, found.trust);
  return {
    server: new URL(found.server),
    proxy: found.proxy ?? null,
    namespace: found.namespace ?? null,
    credentials: ask,
    forget,
  };
}

function ofAccount(folder: string, env: Surroundings['env']): Found {
  const { KUBERNETES_SERVICE_HOST: host = 'kubernetes.default.svc', KUBERNETES_SERVICE_PORT: port = '443' } =
    env;
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: readFileSync(join(folder, 'namespace'), 'utf8').trim(),
    trust: { caFile: join(folder, 'ca.crt') },
    user: { tokenFile: join(folder, 'token') },
  };
}

const named = z.array(z.looseObject({ name: z.string() })).nullish();
const document = z.looseObject({
  'current-context': z.string().nullish(),
  clusters: named,
  contexts: named,
  users: named,
});

/** If several files have an item of one name, the first file's item counts, as in kubectl. */
async function ofFiles(paths: readonly string[], wanted: string | undefined): Promise<Found> {
  if (missingPackages([PACKAGE]).length > 0) {
    throw new Error(
      `the package ${PACKAGE}, which reads kubeconfigs, isn't installed: npm install --include=optional`,
    );
  }
  // These files of the package load in milliseconds. Its KubeConfig loads all API types: 0.5 s and 50 MB.
  const { newClusters, newContexts, newUsers } = await import('@kubernetes/client-node/dist/config_types.js');
  const files = paths.map((path) => {
    const read = document.safeParse(parse(readFileSync(path, 'utf8')));
    if (!read.success) throw new Error(`${path} is not a kubeconfig`);
    return { folder: dirname(resolve(path)), content: read.data };
  });
  const first = <Item extends { readonly name: string }>(
    list: (content: z.output<typeof document>) => readonly Item[],
    name: string,
  ) => {
    for (const { folder, content } of files) {
      const item = list(content).find((one) => one.name === name);
      if (item !== undefined)
        return { item, absolute: (path: string | undefined) => path && resolve(folder, path) };
    }
    return undefined;
  };
  const current = wanted ?? files.map(({ content }) => content['current-context']).find(Boolean);
  if (!current) throw new Error('the kubeconfig has no current-context, and KUBERNETES_CONTEXT names none');
  const context = first(({ contexts }) => newContexts(contexts ?? []), current)?.item;
  if (context === undefined) throw new Error(`it has no context ${current}`);
  const cluster = first(({ clusters }) => newClusters(clusters ?? []), context.cluster);
  if (cluster === undefined) throw new Error(`it has no cluster ${context.cluster}`);
  const user = first(({ users }) => newUsers(users ?? []), context.user);
  if (user === undefined) throw new Error(`it has no user ${context.user}`);
  const known = rawUser.safeParse(first(({ users }) => users ?? [], context.user)?.item.user ?? {});
  if (!known.success) throw new Error(`its user ${context.user}: ${z.prettifyError(known.error)}`);
  const { item: server, absolute } = cluster;
  return {
    server: server.server,
    proxy: server.proxyUrl,
    namespace: context.namespace,
    trust: {
      caFile: absolute(server.caFile),
      caData: server.caData,
      skipsCheck: server.skipTLSVerify,
      name: server.tlsServerName,
    },
    user: {
      ...user.item,
      exec: programIn(user.item.exec, user.absolute),
      certFile: user.absolute(user.item.certFile),
      keyFile: user.absolute(user.item.keyFile),
      // The package doesn't know these members.
      tokenFile: user.absolute(known.data.tokenFile ?? undefined),
      impersonation: impersonationIn(known.data),
    },
  };
}

/** A command with a slash is relative to the file. Programs run without a terminal. */
function programIn(exec: unknown, absolute: (path: string) => string | undefined): ClusterUser['exec'] {
  if (exec === null || exec === undefined) return undefined;
  const { command, args, env, apiVersion } = execPlugin.parse(exec);
  const info = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  return {
    command: command.includes('/') ? absolute(command) : command,
    args: args ?? [],
    env: [...(env ?? []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(info) }],
  };
}

const execPlugin = z.object({
  command: z.string(),
  args: z.array(z.string()).nullish(),
  env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
  apiVersion: z.string(),
});

const rawUser = z.looseObject({
  tokenFile: z.string().nullish(),
  as: z.string().nullish(),
  'as-uid': z.string().nullish(),
  'as-groups': z.array(z.string()).nullish(),
  'as-user-extra': z.record(z.string(), z.array(z.string())).nullish(),
});

/** Throws if the file names a uid, groups or extra members to act as, but no user: kubectl refuses that, too. */
function impersonationIn(user: z.output<typeof rawUser>): Impersonation | undefined {
  const { as, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = user;
  if (as) return { user: as, uid: uid || undefined, groups: groups ?? [], extra: extra ?? {} };
  if (uid || groups?.length || Object.keys(extra ?? {}).length > 0) {
    throw new Error('its user has as-uid, as-groups or as-user-extra, but no as: add the user to act as');
  }
  return undefined;
}
