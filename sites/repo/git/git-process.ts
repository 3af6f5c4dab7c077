import { execFile } from 'node:child_process';
import { devNull } from 'node:os';
import { promisify } from 'node:util';
import { limit } from '../../../base/limit.ts';
import type { GitAnswer, GitRequest } from './git.ts';

/**
 * The process that `git.ts` starts. It runs git for its parent. It ends after the parent has ended and all running
 * commands have finished.
 */

/** Milliseconds between two signs of life while git runs. If this process sends none, `git.ts` replaces it. */
const ALIVE_MS = 1_000;
/** How long git may report no progress before it is ended, milliseconds. */
const SILENCE_MS = 60_000;
/** How many git processes may run at once: each needs memory and file handles. Further calls wait. */
const MAX_PROCESSES = 16;
/** How long git may take to end after SIGTERM, milliseconds. */
const END_MS = 5_000;
/** The maximum number of bytes of output that are kept in memory. */
const MAX_OUTPUT = 1 << 30;
/**
 * Makes git print English messages, never prompt, and ignore `refs/replace`, which replaces objects by others. It reads no
 * settings of the machine or of the user; a caller may name another global file.
 */
const ENVIRONMENT = {
  LC_ALL: 'C',
  GIT_TERMINAL_PROMPT: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: devNull,
  GIT_ATTR_NOSYSTEM: '1',
};
/** Hooks of a repository would run as this process. */
const SETTINGS = [`core.hooksPath=${devNull}`, `core.attributesFile=${devNull}`].flatMap((one) => [
  '-c',
  one,
]);
/** Variables of git that only say how to reach a remote. Others, such as a hook's GIT_DIR, would change what git does. */
const OF_TRANSPORT = /^GIT_(?:ASKPASS|CURL|EXEC_PATH|HTTP|PROXY|SSH|SSL|TRACE)/;

const start = promisify(execFile);
const processes = limit(MAX_PROCESSES);

/** The parent may end while a message is sent; the callback takes that error. */
function send(answer: GitAnswer): void {
  if (process.connected) process.send?.(answer, undefined, undefined, () => undefined);
}

process.on('message', (message) => {
  const request = message as GitRequest; // `git.ts` sends nothing else
  void processes(() => run(request)).then((answer) => {
    send(answer);
    endOrphan();
  });
});
setInterval(() => {
  if (processes.activeCount > 0) send({ isAlive: true });
}, ALIVE_MS).unref();
process.on('disconnect', () => {
  processes.clearQueue();
  endOrphan();
});
// Ctrl-C and service managers signal every process of a group. This process ignores these signals, because the parent
// may still need git for an orderly end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

function endOrphan(): void {
  if (!process.connected && processes.activeCount === 0) process.exit();
}

function inherited(): NodeJS.ProcessEnv {
  const all = Object.entries(process.env);
  return Object.fromEntries(all.filter(([name]) => !name.startsWith('GIT_') || OF_TRANSPORT.test(name)));
}

async function run(request: GitRequest): Promise<GitAnswer> {
  const { id, directory, args, input = '', env = {}, silenceMs = SILENCE_MS } = request;
  let isSilent = false;
  let silence: NodeJS.Timeout | undefined;
  try {
    const running = start('git', [...SETTINGS, ...args], {
      cwd: directory,
      env: { ...inherited(), ...ENVIRONMENT, ...env },
      encoding: 'buffer',
      maxBuffer: MAX_OUTPUT,
    });
    const { child } = running;
    silence = setTimeout(() => {
      isSilent = true;
      child.kill();
      setTimeout(() => child.kill('SIGKILL'), END_MS).unref();
    }, silenceMs);
    for (const output of [child.stdout, child.stderr]) output?.on('data', () => silence?.refresh());
    // git's exit code shows whether it has read the whole input.
    child.stdin?.on('error', () => undefined).end(input);
    const { stdout } = await running;
    return { id, stdout };
  } catch (error) {
    const { code, stderr, message } = error as Error & { readonly code?: unknown; readonly stderr?: Buffer }; // of execFile
    const said = messageOf(stderr?.toString() ?? '');
    if (isSilent)
      return { id, failure: { exitCode: -1, message: `no progress for ${silenceMs / 1000} s; ${said}` } };
    const exitCode = typeof code === 'number' ? code : -1;
    return { id, failure: { exitCode, message: said || `git ${args[0]} failed: ${message}` } };
  } finally {
    clearTimeout(silence);
  }
}

/** A line of a progress display, which git rewrites again and again: `Receiving objects:  42% (3/7)`. */
const PROGRESS =
  /^(?:remote: )?[A-Z][a-z]+(?: [a-z]+)*: +(?:\d+%|\d+, done|\d+$)|^(?:remote: )?Total \d+ \(delta|^From |^To /;

/** git's error output without the display of its progress. */
function messageOf(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).filter((line) => !PROGRESS.test(line.trim()));
  return lines.join('\n').trim();
}
