/** A logger with pino's interface. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Passes each failure on, but not the same message twice in a row. After `null` (a success), any message is new. */
export function warner(warn: (message: string) => void): (error: unknown) => void {
  let last: string | null = null;
  return (error) => {
    const message = error === null ? null : error instanceof Error ? error.message : String(error);
    if (message !== null && message !== last) warn(message);
    last = message;
  };
}
