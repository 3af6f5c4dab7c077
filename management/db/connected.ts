import { type Dialect, Kysely } from 'kysely';
import type { Database, Tables } from './database.ts';

/** The channel on which the triggers of the database report what event streams wait for. */
export const CHANNEL = 'tagyard';

interface NoticeHandlers {
  /** Called for each notice, after the commit of the transaction that caused it. */
  onNotice(notice: string): void;
  /** Listening has begun, or begun again: notices of the time before may be lost. */
  onListening(): void;
}

/** Listens until the signal, on one connection. A connection that breaks is replaced. */
export type Listen = (db: Database, handlers: NoticeHandlers, signal: AbortSignal) => Promise<void>;

/** A database with its notices. */
export class ConnectedDatabase extends Kysely<Tables> {
  readonly #listen: Listen;

  constructor(dialect: Dialect, listen: Listen) {
    super({ dialect });
    this.#listen = listen;
  }

  async listen(handlers: NoticeHandlers, signal: AbortSignal): Promise<void> {
    await this.#listen(this, handlers, signal);
  }
}
