#!/usr/bin/env node
// Everything imported here must load on Node 18, so that the program can say which version of Node it needs.
import { CliError, UsageError, WRONG_USAGE } from './cli/output/cli-error.ts';
import { useCompileCache } from './cli/output/compile-cache.ts';
import { loadDotEnv } from './cli/output/dot-env.ts';
import { nodeProblem } from './cli/output/node-version.ts';

/** Exit code of a process that SIGPIPE ended. */
const PIPE_CLOSED = 141;

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // An instance must keep running if the reader of its messages has ended or the disk is full.
    if (process.argv[2] === 'up') return;
    if (error.code === 'EPIPE') process.exit(process.exitCode || PIPE_CLOSED);
    if (stream === process.stdout)
      process.stderr.write(`tagyard: the output can't be written: ${error.message}\n`);
    process.exit(1);
  });
}

try {
  if (nodeProblem() === null) {
    useCompileCache();
    // The files of tagyard check stand for it.
    if (!process.argv.some((argument) => /^--env-file(=|$)/.test(argument))) loadDotEnv('.env');
  }
  // Imported with the cache of compiled code on, so that this code is cached, too.
  const { program } = await import('./cli/program.ts');
  await program(process.env).parseAsync();
} catch (error) {
  const message = await messageOf(error);
  if (message === null) throw error;
  process.stderr.write(`tagyard: ${message}\n`);
  process.exitCode = error instanceof UsageError ? WRONG_USAGE : 1;
}

/** The message for the user. `null`: a bug in this program, so the stack trace is needed. */
async function messageOf(error: unknown): Promise<string | null> {
  if (error instanceof CliError) return error.message;
  // Of the file system: the message names the file or folder.
  if (error instanceof Error && 'syscall' in error && 'path' in error) return error.message;
  const { ZodError } = await import('zod');
  if (!(error instanceof ZodError)) return null;
  const [issue] = error.issues;
  return `a daemon's answer doesn't match this release (${issue?.path.join('.')}: ${issue?.message}); run the same release of tagyard and its daemons`;
}
