import { simpleGit } from 'simple-git';

/** How long git may write nothing before it is killed, milliseconds. */
const SILENCE_MS = 60_000;

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
}

/** Runs git in `directory` and returns its output as bytes, since a blob may not be UTF-8. Throws `GitError`. */
export async function git(
  directory: string,
  args: readonly string[],
  options: GitOptions = {},
): Promise<Buffer> {
  const { input } = options;
  const stdout: Buffer[] = [];
  let failure: GitError | undefined;
  const client = simpleGit({
    baseDir: directory,
    timeout: { block: SILENCE_MS },
    ...(input === undefined ? {} : { input: () => input }),
    errors: (_error, { exitCode, stdErr }) => {
      if (exitCode === 0) return undefined;
      failure = new GitError(exitCode, Buffer.concat(stdErr).toString().trim() || `git ${args[0]} failed`);
      return failure;
    },
  });
  client.outputHandler((_command, output) => output.on('data', (chunk: Buffer) => stdout.push(chunk)));
  try {
    await client.raw([...args]);
  } catch (error) {
    // simple-git throws an error of its own with the same text.
    throw failure ?? error;
  }
  return Buffer.concat(stdout);
}
