import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { SECRET } from '../gitops/memory-daemon.ts';

export const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));

/** The environment of an interactive terminal. CI sets some of these variables, which disable Node's colours. */
const TERMINAL = {
  TERM: 'xterm-256color',
  CI: undefined,
  FORCE_COLOR: undefined,
  NO_COLOR: undefined,
  NODE_DISABLE_COLORS: undefined,
};

/** Runs the real command against the provisioner at `url`. */
export function tagyardOf(url: string) {
  return async (args: readonly string[], env: Record<string, string> = {}) =>
    await execute([process.execPath, CLI, ...args], url, env);
}

/** Runs the command on a terminal. `stdout` has what it writes to either stream. */
export function tagyardOnTerminal(url: string) {
  return async (args: readonly string[], input?: string) => {
    const command = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ');
    return await execute(['script', '-qec', command, '/dev/null'], url, TERMINAL, input);
  };
}

async function execute(
  [file = '', ...args]: readonly string[],
  url: string,
  env: NodeJS.ProcessEnv,
  input?: string,
) {
  const { exitCode, stdout, stderr } = await execa(file, args, {
    reject: false,
    ...(input === undefined ? { stdin: 'ignore' } : { input }),
    env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET, ...env },
  });
  return { exitCode, stdout, stderr };
}
