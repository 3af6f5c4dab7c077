import { type ChildProcess, fork } from 'node:child_process';
import { siblingUrl } from '../../../base/runtime/sibling.ts';

const PROCESS = siblingUrl('./git-process', import.meta.url);
/** V8's options for that process: they save 20 of its 52 MB of private memory and don't make its answers slower. */
const SMALL = ['--max-semi-space-size=1', '--optimize-for-size'];
/** A helper without work ends after this time, milliseconds: it has 75 MB, and starts in a tenth of a second. */
const IDLE_MS = 5_000;
/**
 * How often its signs of life are checked. It is replaced if two checks find none: at the first one, this process may itself
 * have been stopped until then, with messages unread.
 */
const CHECK_MS = 5_000;

/** git failed; `message` is its error output, or another reason. */
export class GitError extends Error {
  override name = 'GitError';
  /** -1 if git could not be started or was killed. */
  readonly exitCode: number;
  constructor(exitCode: number, message: string) {
    super(message);
    this.exitCode = exitCode;
  }
}

interface GitOptions {
  /** Sent to git's standard input. */
  readonly input?: string | Buffer;
  /** Added to the environment. Secrets belong here: arguments are visible to all users of the machine. */
  readonly env?: Readonly<Record<string, string>>;
  /** Milliseconds without any output (in total for commands about objects) before git is ended; default: 60,000. */
  readonly silenceMs?: number;
}

/** A request to `git-process.ts`. */
export interface GitRequest extends GitOptions {
  readonly id: number;
  readonly directory: string;
  readonly args: readonly string[];
}

/** The subcommand, after options such as `-c name=value`. */
export function verbOf(args: readonly string[]): string | undefined {
  return args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c');
}

/** An answer to one request, or a sign of life, which comes every second while git runs. */
type GitAnswer =
  | { readonly isAlive: true }
  | { readonly id: number; readonly stdout: Uint8Array }
  | { readonly id: number; readonly failure: { readonly exitCode: number; readonly message: string } };

interface Waiting {
  resolve(stdout: Buffer): void;
  reject(error: Error): void;
}

let helper: { readonly process: ChildProcess; readonly waiting: Map<number, Waiting> } | null = null;
let idle: NodeJS.Timeout | undefined;
let lastId = 0;

/**
 * Runs git in `directory` and returns its output as bytes, since a blob or a name may not be UTF-8. A command with
 * `--progress` may take any time while it makes progress. Throws `GitError`.
 *
 * A small helper process starts git. To start a process, the system copies the page tables of its parent, whose event
 * loop is blocked meanwhile: 3 ms at 50 MB, 40 ms at 600 MB. Without the helper, the tests of the API take three times
 * as long.
 *
 * @example (await git('/var/lib/tagyard/sites.git', ['rev-parse', 'HEAD'])).toString().trim()
 */
export async function git(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  helper ??= startHelper();
  const { process: child, waiting } = helper;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  lastId += 1;
  // This process may have changed its PATH since the other one was started.
  const env = { PATH: process.env.PATH ?? '', ...options.env };
  const request: GitRequest = { ...options, id: lastId, directory, args, env };
  clearTimeout(idle);
  waiting.set(request.id, { resolve, reject });
  child.channel?.ref();
  child.send(request);
  return await promise;
}

/** It keeps this process alive only while a command runs. */
function startHelper() {
  const child = fork(PROCESS, {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: ['--disable-warning=ExperimentalWarning', ...SMALL],
  });
  const waiting = new Map<number, Waiting>();
  const started = { process: child, waiting };
  child.unref();
  child.channel?.unref();
  const end = (reason: string) => {
    clearInterval(check);
    if (helper === started) helper = null;
    for (const { reject } of waiting.values()) reject(new GitError(-1, reason));
    waiting.clear();
  };
  let silentChecks = 0;
  const check = setInterval(() => {
    silentChecks = waiting.size === 0 ? 0 : silentChecks + 1;
    if (silentChecks < 2) return;
    child.kill('SIGKILL');
    end(`the process that starts git did not respond for ${(2 * CHECK_MS) / 1000} s; it was ended`);
  }, CHECK_MS).unref();
  child.on('error', ({ message }) => end(`the process that starts git failed: ${message}`));
  child.on('exit', () => end('the process that starts git ended before git did'));
  child.on('message', (message) => {
    silentChecks = 0;
    const answer = message as GitAnswer; // `git-process.ts` sends nothing else
    if ('isAlive' in answer) return;
    const asked = waiting.get(answer.id);
    waiting.delete(answer.id);
    if (waiting.size === 0) {
      child.channel?.unref();
      idle = setTimeout(() => {
        // The helper ends when its channel closes. The next call starts another one.
        helper = null;
        clearInterval(check);
        if (child.connected) child.disconnect();
      }, IDLE_MS).unref();
    }
    if ('stdout' in answer) asked?.resolve(Buffer.from(answer.stdout));
    else asked?.reject(new GitError(answer.failure.exitCode, answer.failure.message));
  });
  return started;
}
