import { CliError } from './cli-error.ts';

/**
 * Reads environment variables from a file, if it exists. Variables that are already set take precedence. Throws
 * `CliError`.
 */
export function loadDotEnv(path: string): void {
  try {
    process.loadEnvFile(path);
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ENOENT') return;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new CliError(`${path} can't be read: ${reason}`, { cause });
  }
}
