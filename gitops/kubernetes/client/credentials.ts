import { readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import type { User } from '@kubernetes/client-node/dist/config_types.js';
import { TerminalError } from '../../../base/errors.ts';
import { withinTime } from '../../../base/time-limit.ts';
import { KubernetesRetryable } from './errors.ts';

/** How long a program of a kubeconfig may take. */
const PROGRAM_MS = 30_000;

/** Whom a user of a kubeconfig impersonates: its keys `as`, `as-uid`, `as-groups` and `as-user-extra`. */
export interface Impersonation {
  readonly user: string;
  readonly uid: string | undefined;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** A user of a kubeconfig, paths absolute. */
export type ClusterUser = { readonly [Member in keyof User]?: User[Member] | undefined } & {
  readonly tokenFile?: string | undefined;
  readonly impersonation?: Impersonation | undefined;
};

/** How the server's certificate is checked. */
export interface ServerTrust {
  readonly caFile?: string | undefined;
  /** Base64. */
  readonly caData?: string | undefined;
  readonly skipsCheck?: boolean | undefined;
  /** The name in the certificate, if it isn't the host of the server's URL. */
  readonly name?: string | undefined;
}

/** What TLS needs, certificates and keys as PEM. */
export interface TlsMaterial {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized?: boolean;
}

/** A list means several headers of one name. */
export type RequestHeaders = Readonly<Record<string, string | string[]>>;

/** What each request needs. */
export interface Credentials {
  readonly tls: TlsMaterial;
  readonly headers: RequestHeaders;
}

/**
 * `ask` reads files again each time; its failures are `KubernetesRetryable`. This function throws `TerminalError` for a
 * way to log in that isn't supported.
 */
export function credentialsOf(user: ClusterUser, trust: ServerTrust) {
  if (user.authProvider) {
    const { name } = user.authProvider;
    throw new TerminalError(
      `Kubernetes: the auth-provider ${name} of the kubeconfig isn't supported; use an exec plugin instead`,
    );
  }
  let program: ((options: RequestOptions) => Promise<void>) | null = null;
  return {
    forget(): void {
      program = null;
    },
    async ask(): Promise<Credentials> {
      try {
        const [ca, cert, key] = await Promise.all([
          pemOf(trust.caFile, trust.caData),
          pemOf(user.certFile, user.certData),
          pemOf(user.keyFile, user.keyData),
        ]);
        const answered: RequestOptions = { headers: {} };
        if (user.exec) {
          program ??= await programOf(user);
          await program(answered);
        }
        const tls = {
          ca,
          cert: text(answered.cert) ?? cert,
          key: text(answered.key) ?? key,
          servername: trust.name,
        };
        return {
          tls: {
            ...Object.fromEntries(Object.entries(tls).filter(([, value]) => value !== undefined)),
            ...(trust.skipsCheck && { rejectUnauthorized: false }),
          },
          headers: {
            ...(await authorization(user, answered)),
            ...(user.impersonation && impersonating(user.impersonation)),
          },
        };
      } catch (cause) {
        const why = cause instanceof Error ? cause.message.trim() : String(cause);
        const from = user.exec ? ` (from ${user.exec.command})` : '';
        throw new KubernetesRetryable('unauthorized', `Kubernetes: no credentials${from}: ${why}`, { cause });
      }
    },
  };
}

async function authorization(user: ClusterUser, answered: RequestOptions): Promise<Record<string, string>> {
  const { Authorization: given } = answered.headers as Record<string, string | undefined>;
  if (given !== undefined) return { authorization: given };
  const token = user.tokenFile === undefined ? user.token : (await readFile(user.tokenFile, 'utf8')).trim();
  if (token) return { authorization: `Bearer ${token}` };
  if (!user.username) return {};
  const pair = Buffer.from(`${user.username}:${user.password ?? ''}`).toString('base64');
  return { authorization: `Basic ${pair}` };
}

/** https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation */
function impersonating({ user, uid, groups, extra }: Impersonation): RequestHeaders {
  return {
    'impersonate-user': user,
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': [...groups] }),
    ...Object.fromEntries(
      Object.entries(extra).map(([key, values]) => [
        `impersonate-extra-${encodeURIComponent(key)}`,
        [...values],
      ]),
    ),
  };
}

/** The exec plugin of the user. Its answer is kept until it expires. */
async function programOf(user: ClusterUser): Promise<(options: RequestOptions) => Promise<void>> {
  const { ExecAuth } = await import('@kubernetes/client-node/dist/exec_auth.js');
  const auth = new ExecAuth();
  return (options) => withinTime(PROGRAM_MS, () => auth.applyAuthentication(user as User, options));
}

async function pemOf(file: string | undefined, data: string | undefined): Promise<string | undefined> {
  if (file) return await readFile(file, 'utf8');
  return data ? Buffer.from(data, 'base64').toString() : undefined;
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
