import { existsSync } from 'node:fs';
import { devNull } from 'node:os';
import { ExecaError, execa } from 'execa';
import { GitPluginError, simpleGit } from 'simple-git';
import { limit } from '../../../base/limit.ts';
import { GitError, type GitRequest, verbOf } from './git.ts';

/**
 * The process that `git.ts` starts. It runs git for its parent. It ends after the parent has ended and all running
 * commands have finished.
 */

/** What talks to a remote, or works on the whole repository, and shows progress: simple-git ends it when it is silent. */
const ORDINARY = new Set(['clone', 'config', 'fetch', 'gc', 'init', 'ls-remote', 'push']);

/** Milliseconds between two signs of life while git runs. Without them, `git.ts` replaces this process. */
const ALIVE_MS = 1_000;
/** How many git processes may run at once: each needs memory and file handles. Further calls wait. */
const processes = limit(16);
const SILENCE_MS = 60_000;
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
const SETTINGS = [`core.hooksPath=${devNull}`, `core.attributesFile=${devNull}`];
/** git's own child that speaks HTTP outlives a killed git: it ends by itself once the server is silent for a minute. */
const HTTP = ['http.lowSpeedLimit=1', 'http.lowSpeedTime=60'];
/** Variables of git that only say how to reach a remote. Others, such as a hook's GIT_DIR, would change what git does. */
const OF_TRANSPORT = /^GIT_(?:ASKPASS|CURL|EXEC_PATH|HTTP|PROXY|SSH|SSL|TRACE)/;
/** Variables for people at a terminal, which simple-git refuses. */
const INTERACTIVE = new Set(['EDITOR', 'PAGER', 'PREFIX', 'VISUAL']);
/** What simple-git refuses unless it is allowed, because a caller's input may contain it. Ours comes from settings only. */
const ALLOWED = {
  allowUnsafeAskPass: true,
  allowUnsafeConfigEnvCount: true,
  allowUnsafeConfigPaths: true,
  allowUnsafeCredentialHelper: true,
  allowUnsafeExec: true,
  allowUnsafeGitProxy: true,
  allowUnsafeHooksPath: true,
  allowUnsafePack: true,
  allowUnsafeSshCommand: true,
};

process.on('message', (message) => {
  const request = message as GitRequest; // `git.ts` sends nothing else
  void processes(() => answerTo(request)).then((answer) => {
    // The parent may end while a message is sent; the callback takes that error.
    if (process.connected) process.send?.(answer, undefined, undefined, () => undefined);
    endOrphan();
  });
});
setInterval(() => {
  if (processes.activeCount > 0 && process.connected) process.send?.({ isAlive: true });
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

async function answerTo({ id, directory, args, input, env = {}, silenceMs = SILENCE_MS }: GitRequest) {
  const run = ORDINARY.has(verbOf(args) ?? '') && input === undefined ? ordinary : streamed;
  try {
    const environment = { ...inherited(), ...ENVIRONMENT, ...env };
    return { id, stdout: await run(directory, args, { input, env: environment, silenceMs }) };
  } catch (error) {
    const { exitCode, message } = error instanceof GitError ? error : new GitError(-1, String(error));
    return { id, failure: { exitCode, message } };
  }
}

type Run = (
  directory: string,
  args: readonly string[],
  options: { input: string | Buffer | undefined; env: Record<string, string>; silenceMs: number },
) => Promise<Buffer>;

const ordinary: Run = async (directory, args, { env, silenceMs }) => {
  let failure: GitError | undefined;
  const client = () =>
    simpleGit({
      baseDir: directory,
      config: [...SETTINGS, ...HTTP],
      timeout: { block: silenceMs },
      unsafe: ALLOWED,
      allowEnvironment: Object.keys(env),
      // simple-git alone takes a failure that says nothing, such as that of a killed git, for success.
      errors(error, { exitCode, stdErr }: { exitCode: number | null; stdErr: Buffer[] }) {
        if (exitCode === 0) return error;
        const said = messageOf(Buffer.concat(stdErr).toString());
        const reason = said || `git ${verbOf(args)} ${exitCode === null ? 'was killed' : 'failed'}`;
        failure = new GitError(exitCode ?? -1, reason);
        return error ?? failure;
      },
    });
  try {
    const output = await client()
      .env(env)
      .raw([...args]);
    return Buffer.from(output);
  } catch (error) {
    if (error instanceof GitPluginError && error.plugin === 'timeout')
      throw new GitError(-1, `no progress for ${silenceMs / 1000} s`);
    throw failure ?? notStarted(directory, args, error);
  }
};

const streamed: Run = async (directory, args, { input = '', env, silenceMs }) => {
  const settings = SETTINGS.flatMap((setting) => ['-c', setting]);
  try {
    const { stdout } = await execa('git', [...settings, ...args], {
      cwd: directory,
      env,
      extendEnv: false,
      encoding: 'buffer',
      input,
      maxBuffer: MAX_OUTPUT,
      timeout: silenceMs,
      stripFinalNewline: false,
    });
    return Buffer.from(stdout.buffer, stdout.byteOffset, stdout.byteLength);
  } catch (error) {
    if (!(error instanceof ExecaError)) throw error;
    if (error.timedOut) throw new GitError(-1, `no answer for ${silenceMs / 1000} s`);
    const said = messageOf(Buffer.from(error.stderr ?? '').toString());
    if (error.exitCode === undefined && said === '') throw notStarted(directory, args, error);
    throw new GitError(error.exitCode ?? -1, said || `git ${verbOf(args)} failed`);
  }
};

function notStarted(directory: string, args: readonly string[], error: unknown): GitError {
  if (!existsSync(directory)) return new GitError(-1, `the folder ${directory} is gone`);
  const { originalMessage, message } = error as { originalMessage?: string; message?: string }; // of execa, or of any error
  return new GitError(-1, `git ${verbOf(args)} failed: ${originalMessage ?? message}`);
}

function inherited(): Record<string, string> {
  const all = Object.entries(process.env).flatMap(([name, value]) => {
    const isKept = name.startsWith('GIT_') ? OF_TRANSPORT.test(name) : !INTERACTIVE.has(name);
    return value !== undefined && isKept ? [[name, value]] : [];
  });
  return Object.fromEntries(all);
}

/** A line of a progress display, which git rewrites again and again: `Receiving objects:  42% (3/7)`. */
const PROGRESS =
  /^(?:remote: )?[A-Z][a-z]+(?: [a-z]+)*: +(?:\d+%|\d+, done|\d+$)|^(?:remote: )?Total \d+ \(delta|^From |^To /;

/** git's error output without the display of its progress. */
function messageOf(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).filter((line) => !PROGRESS.test(line.trim()));
  return lines.join('\n').trim();
}
