import { ExecaError, execa } from 'execa';
import { limit } from '../base/limit.ts';

/** How long git may report no progress before it is ended, milliseconds. */
const SILENCE_MS = 60_000;
/** Running git processes at most: each has memory and file handles of its own. Further calls wait. */
const MAX_PROCESSES = 16;
/** Bytes of output that are kept in memory. */
const MAX_OUTPUT = 1 << 30;

const processes = limit(MAX_PROCESSES);

/** git ended with another code than 0; `message` is its error output. */
export class GitError extends Error {
  override name = 'GitError';
  readonly exitCode: number;
  constructor(exitCode: number, message: string, options?: ErrorOptions) {
    super(message, options);
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

/** English messages, and never a question that waits for an answer. */
const ENVIRONMENT = { LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0' };

/**
 * Runs git in `directory` and returns its output as bytes, since a blob may not be UTF-8. A command with `--progress` may
 * take as long as it makes progress. Throws `GitError`.
 */
export async function git(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  return await processes(() => run(directory, args, options));
}

async function run(
  directory: string,
  args: readonly string[],
  { input = '', env = {}, silenceMs = SILENCE_MS }: GitOptions,
): Promise<Buffer> {
  const child = execa('git', args, {
    cwd: directory,
    input,
    env: { ...ENVIRONMENT, ...env },
    encoding: 'buffer',
    stripFinalNewline: false,
    maxBuffer: MAX_OUTPUT,
  });
  let isSilent = false;
  const silence = setTimeout(() => {
    isSilent = true;
    child.kill();
  }, silenceMs);
  for (const output of [child.stdout, child.stderr]) output?.on('data', () => silence.refresh());
  try {
    return Buffer.from((await child).stdout);
  } catch (cause) {
    if (!(cause instanceof ExecaError)) throw cause;
    const said = messageOf(Buffer.from((cause.stderr as Uint8Array | undefined) ?? []).toString()); // encoding: buffer
    if (isSilent) throw new GitError(-1, `no progress for ${silenceMs / 1000} s; ${said}`);
    throw new GitError(cause.exitCode ?? -1, said || `git ${args[0]} failed: ${cause.shortMessage}`);
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
