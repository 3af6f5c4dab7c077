import { stripVTControlCharacters } from 'node:util';
import { vi } from 'vitest';
import { CliError, UsageError, WRONG_USAGE } from '../../../gitops/cli/output/cli-error.ts';
import { program } from '../../../gitops/cli/program.ts';
import { SECRET } from '../gitops/memory-daemon.ts';

/**
 * Runs a verb against the provisioner at `url` in this process. That takes a tenth of the time of a separate process.
 * `exitCode` is the exit code that the command would have; `stderr` has its error message.
 */
export async function tagyardHere(url: string, args: readonly string[], env: Record<string, string> = {}) {
  const output: string[] = [];
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => output.push(String(text)) > 0);
  const before = process.exitCode;
  process.exitCode = 0;
  let stderr = '';
  try {
    await program({ INFRA_PROVISIONER_URL: url, INFRA_SECRET: SECRET, ...env })
      .exitOverride()
      .parseAsync(args, { from: 'user' });
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    stderr = error.message;
    process.exitCode = error instanceof UsageError ? WRONG_USAGE : 1;
  } finally {
    write.mockRestore();
  }
  const { exitCode } = process;
  process.exitCode = before;
  return { exitCode, stdout: stripVTControlCharacters(output.join('')).trimEnd(), stderr };
}
