import { type ChildProcess, fork } from 'node:child_process';
import { siblingUrl } from '../../../base/runtime/sibling.ts';

const PROCESS = siblingUrl('./git-process', import.meta.url);
/** V8's options for that process: they save 20 of its 52 MB of private memory and don't make its answers slower. */
const SMALL = ['--max-semi-space-size=1', '--optimize-for-size'];

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
  /** Milliseconds without any output before git is ended; default: 60,000. */
  readonly silenceMs?: number;
}

/** A request to `git-process.ts`. */
export interface GitRequest extends GitOptions {
  readonly id: number;
  readonly directory: string;
  readonly args: readonly string[];
}

/** An answer to one request, or a sign of life, which comes every second while git runs. */
export type GitAnswer =
  | { readonly isAlive: true }
  | { readonly id: number; readonly stdout: Buffer }
  | { readonly id: number; readonly failure: { readonly exitCode: number; readonly message: string } };

/** Milliseconds. */
interface GitTimes {
  /** How often the helper's signs of life are checked. If two checks find none, it is replaced. */
  readonly checkMs: number;
  /** A helper without work ends after this time: it has 75 MB, and starts in a tenth of a second. */
  readonly idleMs: number;
}

/** A function `git` with a helper process of its own. */
export function gitRunner({ checkMs = 10_000, idleMs = 5_000 }: Partial<GitTimes> = {}) {
  let starter: GitStarter | undefined;
  return async (directory: string, args: readonly string[], options: GitOptions = {}): Promise<Buffer> => {
    if (starter === undefined || starter.hasEnded) starter = new GitStarter({ checkMs, idleMs });
    return await starter.run(directory, args, options);
  };
}

interface Waiting {
  resolve(stdout: Buffer): void;
  reject(error: Error): void;
}

/** The process that starts git. It doesn't keep this process alive unless a command runs. */
class GitStarter {
  readonly #times: GitTimes;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #lastId = 0;
  #hasEnded = false;
  #check: NodeJS.Timeout | undefined;
  #idle: NodeJS.Timeout | undefined;
  /**
   * The number of checks since the last message. The helper is replaced at the second check: at the first one, this
   * process may itself have been stopped until then, with messages unread.
   */
  #silentChecks = 0;

  constructor(times: GitTimes) {
    this.#times = times;
    this.#child = fork(PROCESS, {
      serialization: 'advanced',
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      execArgv: ['--disable-warning=ExperimentalWarning', ...SMALL],
    });
    this.#child.unref();
    this.#child.channel?.unref();
    this.#child.on('message', (message) => this.#settle(message as GitAnswer));
    this.#child.on('error', (error) => this.#end(`the process that starts git failed: ${error.message}`));
    this.#child.on('exit', () => this.#end('the process that starts git ended before git did'));
  }

  /** Whether the next call needs a new `GitStarter`. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  async run(directory: string, args: readonly string[], options: GitOptions): Promise<Buffer> {
    const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
    this.#lastId += 1;
    // This process may have changed its PATH since the other one was started.
    const env = { PATH: process.env.PATH ?? '', ...options.env };
    const request: GitRequest = { ...options, id: this.#lastId, directory, args, env };
    clearTimeout(this.#idle);
    if (this.#waiting.size === 0) this.#watch();
    this.#waiting.set(request.id, { resolve, reject });
    this.#child.channel?.ref();
    this.#child.send(request);
    return await promise;
  }

  #watch(): void {
    const { checkMs } = this.#times;
    this.#silentChecks = 0;
    this.#check = setInterval(() => {
      this.#silentChecks += 1;
      if (this.#silentChecks < 2) return;
      this.#child.kill('SIGKILL');
      this.#end(`the process that starts git did not respond for ${(2 * checkMs) / 1000} s; it was ended`);
    }, checkMs);
  }

  /** The helper ends when its channel closes. The next call starts another helper. */
  #dismiss(): void {
    this.#hasEnded = true;
    if (this.#child.connected) this.#child.disconnect();
  }

  #end(reason: string): void {
    this.#hasEnded = true;
    clearTimeout(this.#idle);
    clearInterval(this.#check);
    for (const { reject } of this.#waiting.values()) reject(new GitError(-1, reason));
    this.#waiting.clear();
  }

  #settle(answer: GitAnswer): void {
    this.#silentChecks = 0;
    if ('isAlive' in answer) return;
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) {
      clearInterval(this.#check);
      this.#child.channel?.unref();
      this.#idle = setTimeout(() => this.#dismiss(), this.#times.idleMs).unref();
    }
    if ('stdout' in answer) waiting?.resolve(answer.stdout);
    else waiting?.reject(new GitError(answer.failure.exitCode, answer.failure.message));
  }
}

/**
 * Runs git in `directory` and returns its output as bytes, since a blob may not be UTF-8. A command with `--progress`
 * may take any time while it makes progress. Throws `GitError`.
 *
 * A small helper process starts git. To start a process, the system copies the page tables of its parent, whose event
 * loop is blocked meanwhile: 3 ms at 50 MB, 40 ms at 600 MB.
 */
export const git = gitRunner();
