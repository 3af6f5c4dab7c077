/** An error that the operator can fix: printed as one line without a stack; the exit code is 1. */
export class CliError extends Error {
  override name = 'CliError';
}

/** EX_USAGE of sysexits.h; 1 is a failure, and 2 means that something would change. */
export const WRONG_USAGE = 64;

/** The command line was used wrongly: the exit code is `WRONG_USAGE`. */
export class UsageError extends CliError {
  override name = 'UsageError';
}

/** A service refused the request; `code` is one of its error codes. */
export class ServiceProblem extends CliError {
  override name = 'ServiceProblem';
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}
