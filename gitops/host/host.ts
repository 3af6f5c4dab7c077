import type { Env } from '../env.ts';
import type { ClusterOptions, Host } from './contract.ts';

/**
 * Opens the place where this daemon's sites run, by `HOST_KIND`, and creates its appliers from the environment. `stack`
 * closes them again, also if this function throws. What the kind doesn't need isn't loaded.
 */
export async function buildHost(
  env: Env,
  stack: AsyncDisposableStack,
  options: Omit<ClusterOptions, 'now'> & { readonly now?: () => number },
): Promise<Host> {
  const { log, ordinal, now = () => Date.now() } = options;
  if (env.HOST_KIND === 'kubernetes') {
    const { buildCluster } = await import('./cluster.ts');
    return await buildCluster(env, stack, { log, now, ordinal });
  }
  const { buildMachine } = await import('./machine.ts');
  return await buildMachine(env, stack, { log, now });
}

/** What the pods of one installation in a cluster have in common; `null`: this process doesn't run in such a pod. */
export async function installationOf(env: Env): Promise<string | null> {
  if (env.HOST_KIND !== 'kubernetes') return null;
  const { podAccount } = await import('../kubernetes/client/pod-account.ts');
  return await podAccount({ kubeconfig: env.KUBECONFIG, context: env.KUBERNETES_CONTEXT });
}
