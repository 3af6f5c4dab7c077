import { type Dialect, Kysely } from 'kysely';
import type { Database, Tables } from './database.ts';

/** The channel of the notices that the database's triggers send for event streams. */
export const CHANNEL = 'tagyard';

interface NoticeHandlers {
  /** Called for each notice, after the commit of the transaction that caused it. */
  onNotice(notice: string): void;
  /**
   * Called when listening has begun or begun again, before the first notice of the new connection. Earlier notices may
   * be lost.
   */
  onListening(): void;
}

/** Listens until the signal. Replaces a connection that breaks. */
export type Listen = (db: Database, handlers: NoticeHandlers, signal: AbortSignal) => Promise<void>;

/** A database whose notices can be listened to. */
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
