/** An error that the operator can fix: printed as one line without a stack; the exit code is 1. */
export class CliError extends Error {
  override name = 'CliError';
}
