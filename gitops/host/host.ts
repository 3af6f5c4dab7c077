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
  const { log, ordinal, mayWrite, now = () => Date.now() } = options;
  if (env.HOST_KIND === 'kubernetes') {
    const { buildCluster } = await import('./cluster.ts');
    return await buildCluster(env, stack, { log, now, ordinal, mayWrite });
  }
  const { buildMachine } = await import('./machine.ts');
  return await buildMachine(env, stack, { log, now });
}
