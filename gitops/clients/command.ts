import { ExecaError, execa } from 'execa';

/** A program that couldn't be run, ran too long, or ended with another code than 0. */
export class CommandError extends Error {
  override name = 'CommandError';
  /** `null` where it didn't end by itself: not started, timed out, killed. */
  readonly exitCode: number | null;
  /** The last `KEPT` characters of what it wrote. */
  readonly stdout: string;
  /** The same of what it complained of. */
  readonly stderr: string;
  constructor(
    message: string,
    details: { exitCode: number | null; stdout: string; stderr: string },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.exitCode = details.exitCode;
    this.stdout = details.stdout;
    this.stderr = details.stderr;
  }
}

export interface CommandOptions {
  /** Milliseconds before it is killed, 30,000 unless told. */
  readonly timeoutMs?: number;
  readonly cwd?: string;
  /** The whole environment of the program: nothing is inherited but PATH. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Characters of output, `MAX_OUTPUT` unless told; a program that floods us is killed rather than kept in memory. */
  readonly maxOutput?: number;
  /** Kills it when aborted. */
  readonly signal?: AbortSignal;
}

/** An error is a message, not the output of the program. */
const KEPT = 10_000;
/** Enough for any message. */
const MAX_OUTPUT = 1_000_000;

/** Runs a program by its argument list, without a shell; answers what it wrote. Throws `CommandError`. */
export async function runCommand(
  file: string,
  args: readonly string[],
  { timeoutMs = 30_000, cwd, env = {}, input = '', maxOutput = MAX_OUTPUT, signal }: CommandOptions = {},
): Promise<{ stdout: string; stderr: string }> {
  try {
    const { stdout, stderr } = await execa(file, args, {
      timeout: timeoutMs,
      maxBuffer: maxOutput,
      extendEnv: false,
      env: { PATH: process.env.PATH ?? '', ...env },
      input,
      ...(cwd === undefined ? {} : { cwd }),
      ...(signal === undefined ? {} : { cancelSignal: signal }),
    });
    return { stdout, stderr };
  } catch (cause) {
    if (!(cause instanceof ExecaError)) throw cause;
    const stdout = endOf(cause.stdout);
    const stderr = endOf(cause.stderr);
    const said = stderr.trim().split('\n').at(-1);
    throw new CommandError(
      `${cause.shortMessage}${said ? `: ${said}` : ''}`,
      { exitCode: cause.exitCode ?? null, stdout, stderr },
      // execa's own error holds all that the program wrote; what is behind it is the reason, if there is one.
      { cause: cause.cause },
    );
  }
}

function endOf(output: unknown): string {
  return typeof output === 'string' ? output.slice(-KEPT) : '';
}
