/** No connection to the database can be made, or the one that was used broke: nothing says what has become of a query. */
export class DatabaseUnavailableError extends Error {
  override name = 'DatabaseUnavailableError';
  /** True: a person must change something first, such as a wrong password. */
  readonly isFinal: boolean;
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.isFinal = !isAway(cause);
  }
}

/**
 * SQLSTATEs of a server that can't be used now: no connection (08), no resources (53), shutdown or start (57P), its system
 * (58), a standby that was not yet promoted (25006). Source: PostgreSQL, Appendix A. PostgreSQL Error Codes.
 */
const AWAY = /^(?:(?:08|53|58)[0-9A-Z]{3}|57P[0-9A-Z]{2}|25006)$/;

/** Whether the error says that the database can't be used now. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof DatabaseUnavailableError || (error instanceof Error && AWAY.test(codeOf(error)));
}

/** Whether an error of pg says so: by a code of the server or of a socket, or by a text alone. */
export function isAway(error: Error): boolean {
  const code = codeOf(error);
  if (code === '') return /connection (?:terminated|error)|not queryable|timeout e/i.test(error.message);
  return AWAY.test(code) || /^E(?!RR_)[A-Z_]+$/.test(code);
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : '';
}
