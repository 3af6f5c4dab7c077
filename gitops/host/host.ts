import type { Log } from '../base/log.ts';
import type { Env } from '../env.ts';
import type { Host } from './contract.ts';

/**
 * Opens the place where this daemon's sites run, and creates its appliers from the environment. `stack`
 * closes them again, also if this function throws.
 */
export async function buildHost(
  env: Env,
  stack: AsyncDisposableStack,
  { log, now = () => Date.now() }: { readonly log: Log; readonly now?: () => number },
): Promise<Host> {
  const { buildMachine } = await import('./machine.ts');
  return await buildMachine(env, stack, { log, now });
}
