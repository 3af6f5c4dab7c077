import type { Log } from '../base/log.ts';
import type { Env } from '../env.ts';
import type { Host } from './contract.ts';

/**
 * Opens the place where this daemon's sites run, by `HOST_KIND`, and creates its appliers from the environment. `stack`
 * closes them again, also if this function throws. What the kind doesn't need isn't loaded.
 */
export async function buildHost(
  env: Env,
  stack: AsyncDisposableStack,
  options: { readonly log: Log; ordinal(): Promise<number | null>; readonly now?: () => number },
): Promise<Host> {
  const { log, ordinal, now = () => Date.now() } = options;
  if (env.HOST_KIND === 'kubernetes') {
    const { buildCluster } = await import('./cluster.ts');
    return await buildCluster(env, stack, { log, now, ordinal });
  }
  const { buildMachine } = await import('./machine.ts');
  return await buildMachine(env, stack, { log, now });
}
