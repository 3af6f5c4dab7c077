/** An error that the operator can fix: printed as one line without a stack; the exit code is 1. */
export class CliError extends Error {
  override name = 'CliError';
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
