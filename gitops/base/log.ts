/** Where a part of the daemon writes its log lines: pino's shape. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}
