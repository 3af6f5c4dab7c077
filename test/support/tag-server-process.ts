import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { TAG_SERVER_ENTRY } from '../../sites/local/demo/tag-server/entry.ts';
import type { EndedRole, StartedRole } from '../conform/tag-server/target.ts';

/** A process of the stand-in on a free loopback port. It gets only `HOST`, `PORT` and `env`. */
export function forkTagServer(env: Readonly<Record<string, string>>): ChildProcess {
  return fork(TAG_SERVER_ENTRY, [], {
    env: { HOST: '127.0.0.1', PORT: '0', ...env },
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
}

/** The URL of the stand-in, read from its log when it listens. */
export async function urlOf(child: ChildProcess): Promise<string> {
  const url = await urlOrEnd(child);
  if (url === null) throw new Error('the process ended before it listened');
  return url;
}

async function urlOrEnd({ stdout }: ChildProcess): Promise<string | null> {
  for await (const chunk of stdout?.iterator({ destroyOnReturn: false }) ?? []) {
    const port = /listens on port (\d+)/.exec(String(chunk))?.[1];
    if (port !== undefined) return `http://127.0.0.1:${port}`;
  }
  return null;
}

/** Starts the stand-in as a process; resolves once it listens or has ended. */
export async function startTagServerProcess(
  env: Readonly<Record<string, string>>,
): Promise<StartedRole | EndedRole> {
  const child = forkTagServer(env);
  const exit = once(child, 'exit');
  const written = child.stderr === null ? Promise.resolve('') : text(child.stderr);
  const url = await urlOrEnd(child);
  if (url === null) {
    const [code] = await exit;
    return { listens: false, code: typeof code === 'number' ? code : null, output: await written };
  }
  return {
    listens: true,
    url,
    async stop() {
      child.kill('SIGKILL');
      await exit;
    },
  };
}
