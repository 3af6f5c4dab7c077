import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openKubernetes } from '../../../gitops/kubernetes/client/client.ts';
import type { KubernetesClient } from '../../../gitops/kubernetes/client/contract.ts';
import { type Answerer, ScriptedServer } from './scripted-server.ts';

interface ScriptedCluster extends AsyncDisposable {
  readonly client: KubernetesClient;
  readonly server: ScriptedServer;
  /** The path of a kubeconfig for the server. */
  readonly kubeconfig: string;
}

/** A client of an API server that gives these answers. */
export async function openedScripted(...answers: readonly Answerer[]): Promise<ScriptedCluster> {
  await using stack = new AsyncDisposableStack();
  const server = stack.use(await ScriptedServer.start(...answers));
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-scripted-'));
  stack.defer(() => rm(folder, { recursive: true }));
  const kubeconfig = join(folder, 'kubeconfig');
  const named = {
    clusters: [
      { name: 'test', cluster: { server: server.config.server.href, 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'test', user: { token: 'token' } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  };
  await writeFile(kubeconfig, JSON.stringify({ ...named, 'current-context': 'test' }));
  const client = stack.adopt(await openKubernetes({ kubeconfig }), (one) => one.close());
  const owned = stack.move();
  return { client, server, kubeconfig, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}
