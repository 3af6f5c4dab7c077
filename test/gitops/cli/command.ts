import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { SECRET } from '../../support/gitops/memory-daemon.ts';

const CLI = fileURLToPath(new URL('../../../gitops/cli.ts', import.meta.url));

/** A person's environment, also where the tests themselves run unwatched: these variables take Node's colours away. */
const PERSON = {
  TERM: 'xterm-256color',
  CI: undefined,
  FORCE_COLOR: undefined,
  NO_COLOR: undefined,
  NODE_DISABLE_COLORS: undefined,
};

/** The real command against the provisioner at `url`. */
export function tagyardOf(url: string) {
  return async (args: readonly string[], env: Record<string, string> = {}) =>
    await outcome([process.execPath, CLI, ...args], url, env);
}

/** The same on a terminal: what is written to either stream comes as `stdout`. */
export function tagyardOnTerminal(url: string) {
  return async (args: readonly string[]) => {
    const command = [process.execPath, CLI, ...args].map((word) => `'${word}'`).join(' ');
    return await outcome(['script', '-qec', command, '/dev/null'], url, PERSON);
  };
}

async function outcome([file = '', ...args]: readonly string[], url: string, env: NodeJS.ProcessEnv) {
  const { exitCode, stdout, stderr } = await execa(file, args, {
    reject: false,
    stdin: 'ignore',
    env: { INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET, ...env },
  });
  return { exitCode, stdout, stderr };
}
