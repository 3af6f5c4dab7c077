import { simpleGit } from 'simple-git';
import type { GitAnswer, GitRequest } from './git.ts';

/**
 * The process that `git.ts` starts and asks: it runs git for its parent, and ends when the parent has ended and the
 * commands that run have finished.
 */

/** How long git may write nothing before it is killed, milliseconds. */
const SILENCE_MS = 60_000;

let running = 0;
let isOrphan = false;

process.on('message', (message) => {
  running += 1;
  void run(message as GitRequest).then((answer) => {
    running -= 1;
    // The parent may have ended: then the answer has no receiver, and the other commands still run to their end.
    if (process.connected) process.send?.(answer, undefined, undefined, () => undefined);
    endOrphan();
  });
});
process.on('disconnect', () => {
  isOrphan = true;
  endOrphan();
});
// Ctrl-C and service managers signal every process of a group; the parent may still need git for an orderly end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});

function endOrphan(): void {
  if (isOrphan && running === 0) process.exit();
}

async function run({ id, directory, args, input }: GitRequest): Promise<GitAnswer> {
  const stdout: Buffer[] = [];
  let exitCode: number | null = null;
  let errorOutput = '';
  try {
    const client = simpleGit({
      baseDir: directory,
      timeout: { block: SILENCE_MS },
      ...(input === undefined ? {} : { input: () => input }),
      errors: (_error, ended) => {
        if (ended.exitCode === 0) return undefined;
        exitCode = ended.exitCode;
        errorOutput = Buffer.concat(ended.stdErr).toString().trim();
        return new Error(errorOutput);
      },
    });
    client.outputHandler((_command, output) => output.on('data', (chunk: Buffer) => stdout.push(chunk)));
    await client.raw([...args]);
    return { id, stdout: Buffer.concat(stdout) };
  } catch (error) {
    // simple-git throws an error of its own for another exit code than 0.
    const message = exitCode === null ? String(error) : errorOutput || `git ${args[0]} failed`;
    return { id, failure: { exitCode, message } };
  }
}
