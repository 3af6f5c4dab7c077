import { limit } from '../../base/limit.ts';

/** A program could not be started, timed out, or ended with another code than 0. */
export class CommandError extends Error {
  override name = 'CommandError';
  /** `null` if it was not started, timed out or was killed. */
  readonly exitCode: number | null;
  /** The last `KEPT` characters of its output. */
  readonly stdout: string;
  /** The same of its error output. */
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
  /** Milliseconds before it is killed; default: 30,000. */
  readonly timeoutMs?: number;
  readonly cwd?: string;
  /** The environment of the program, besides PATH: nothing else is inherited. */
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  /** Characters of output before it is killed; default: `MAX_OUTPUT`. */
  readonly maxOutput?: number;
  /** Kills it when aborted. */
  readonly signal?: AbortSignal;
}

/** Enough of the output for a message. */
const KEPT = 10_000;
/** The output is kept in memory. */
const MAX_OUTPUT = 1_000_000;

/**
 * The most processes of one program at once. Each program has its own limit, so one that hangs doesn't delay the others.
 */
const MAX_PROCESSES = 8;
const processes = new Map<string, ReturnType<typeof limit>>();

/**
 * Runs a program without a shell and returns its output. Waits while `MAX_PROCESSES` of the program run. Throws
 * `CommandError`.
 */
export async function runCommand(
  file: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<{ stdout: string; stderr: string }> {
  const limited = processes.get(file) ?? limit(MAX_PROCESSES);
  processes.set(file, limited);
  return await limited(() => run(file, args, options));
}

async function run(
  file: string,
  args: readonly string[],
  { timeoutMs = 30_000, cwd, env = {}, input = '', maxOutput = MAX_OUTPUT, signal }: CommandOptions,
): Promise<{ stdout: string; stderr: string }> {
  const { ExecaError, execa } = await import('execa');
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
      // execa's own error contains the whole output; its cause is enough.
      { cause: cause.cause },
    );
  }
}

function endOf(output: unknown): string {
  return typeof output === 'string' ? output.slice(-KEPT) : '';
}
