import { writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/**
 * Starts the runtime in a session of its own, so that Ctrl-C doesn't reach it before its logs are sent. The system ends
 * it together with the process that started it, even if that is killed (prctl(2), PR_SET_PDEATHSIG). Without util-linux
 * it is started directly.
 */
const STARTER = `#!/bin/sh
command -v setsid >/dev/null && command -v setpriv >/dev/null || exec "$RUNTIME_PROGRAM" "$@"
exec setsid setpriv --pdeathsig KILL "$RUNTIME_PROGRAM" "$@"
`;

/** Has Miniflare start its runtime by a script in `dir`: Miniflare itself can only start a plain child process. */
export async function bindRuntime(dir: string, env: NodeJS.ProcessEnv): Promise<void> {
  const starter = join(dir, 'workerd.sh');
  await writeFile(starter, STARTER, { mode: 0o700 });
  env.RUNTIME_PROGRAM = env.MINIFLARE_WORKERD_PATH || runtimeProgram();
  env.MINIFLARE_WORKERD_PATH = starter;
}

/** The program that Miniflare would start. */
function runtimeProgram(): string {
  const ofMiniflare = createRequire(createRequire(import.meta.url).resolve('miniflare'));
  return (ofMiniflare('workerd') as { readonly default: string }).default; // its own dependency
}
