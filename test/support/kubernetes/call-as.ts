import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { z } from 'zod';
import type { Cluster } from './cluster.ts';

const kubeconfig = z.object({
  clusters: z.tuple([
    z.object({ cluster: z.object({ server: z.string(), 'certificate-authority': z.string() }) }),
  ]),
  users: z.tuple([
    z.object({ user: z.object({ 'client-certificate': z.string(), 'client-key': z.string() }) }),
  ]),
});
const answer = z.object({ message: z.string().optional() });

/** One request to the API server. */
export interface ApiCall {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** With its query: `/api/v1/namespaces?limit=1`. */
  readonly path: string;
  readonly body?: object;
}

/**
 * Sends requests in the name of an account, by the administrator's right to impersonate. Resolves to the status and the
 * message of the answer; for a watch, to the status alone.
 */
export async function callerAs(
  cluster: Cluster,
  account: string,
): Promise<(call: ApiCall) => Promise<{ status: number; message: string }>> {
  const read = kubeconfig.parse(JSON.parse(await readFile(cluster.kubeconfig, 'utf8')));
  const [{ cluster: at }] = read.clusters;
  const [{ user }] = read.users;
  const [ca, cert, key] = await Promise.all(
    [at['certificate-authority'], user['client-certificate'], user['client-key']].map((file) =>
      readFile(file),
    ),
  );
  return ({ method, path, body }) =>
    new Promise((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
      const headers = { 'impersonate-user': account, 'content-type': type };
      const sent = request(new URL(path, at.server), { method, headers, ca, cert, key }, (response) => {
        const { statusCode: status = 0 } = response;
        if (status === 200 && path.includes('watch=')) {
          response.destroy();
          return resolve({ status, message: '' });
        }
        json(response).then(
          (object) => resolve({ status, message: answer.parse(object).message ?? '' }),
          reject,
        );
      });
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
}

/** Writes a kubeconfig with a token of a service account, and returns its path. */
export async function accountKubeconfig(
  cluster: Cluster,
  namespace: string,
  account: string,
): Promise<string> {
  const token = await cluster.kubectl('create', 'token', account, '--namespace', namespace);
  return await tokenKubeconfig(cluster, `${namespace}-${account}`, token);
}

/** Writes a kubeconfig with this token to a file of this name, and returns its path. */
export async function tokenKubeconfig(cluster: Cluster, name: string, token: string): Promise<string> {
  const config = JSON.parse(await readFile(cluster.kubeconfig, 'utf8'));
  const path = join(cluster.folder, `${name}.kubeconfig`);
  const users = [{ name: 'test', user: { token: token.trim() } }];
  await writeFile(path, JSON.stringify({ ...config, users }), { mode: 0o600 });
  return path;
}
