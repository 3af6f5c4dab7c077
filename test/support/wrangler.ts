import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execaNode } from 'execa';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs wrangler in a project's folder and returns what it prints. It runs with this Node, keeps its files under `home`
 * and sends no telemetry.
 */
export function wrangler(project: string, home: string, ...args: readonly string[]): Promise<string> {
  return wranglerWith({}, project, home, ...args);
}

/** The same with further environment variables. */
export async function wranglerWith(
  env: Readonly<Record<string, string>>,
  project: string,
  home: string,
  ...args: readonly string[]
): Promise<string> {
  const { stdout } = await execaNode(join(root, 'node_modules/wrangler/bin/wrangler.js'), args, {
    cwd: project,
    nodeOptions: [],
    env: {
      XDG_CONFIG_HOME: home,
      WRANGLER_LOG_PATH: join(home, 'logs'),
      WRANGLER_SEND_METRICS: 'false',
      CI: '1',
      ...env,
    },
  });
  return stdout;
}
