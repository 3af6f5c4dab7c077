import { type DatabaseConnection, type Driver, PGliteDialect, type TransactionSettings } from 'kysely';
import { limit } from '../../base/limit.ts';

/**
 * Kysely's PGlite dialect, whose only connection has one user at a time. Otherwise, a query that is concurrent with an
 * open transaction would run inside it, and a second transaction would overwrite the handles of the first.
 */
export class EmbeddedDialect extends PGliteDialect {
  override createDriver(): Driver {
    return new ExclusiveDriver(super.createDriver());
  }
}

class ExclusiveDriver implements Driver {
  readonly #inner: Driver;
  readonly #mutex = limit(1);
  #release: () => void = () => undefined;

  constructor(inner: Driver) {
    this.#inner = inner;
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const acquired = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    void this.#mutex(() => {
      acquired.resolve();
      return released.promise;
    });
    await acquired.promise;
    this.#release = released.resolve;
    return await this.#inner.acquireConnection();
  }

  async releaseConnection(connection: DatabaseConnection): Promise<void> {
    await this.#inner.releaseConnection(connection);
    this.#release();
  }

  init = () => this.#inner.init();
  destroy = () => this.#inner.destroy();
  beginTransaction = (connection: DatabaseConnection, settings: TransactionSettings) =>
    this.#inner.beginTransaction(connection, settings);
  commitTransaction = (connection: DatabaseConnection) => this.#inner.commitTransaction(connection);
  rollbackTransaction = (connection: DatabaseConnection) => this.#inner.rollbackTransaction(connection);
}
