import { type DatabaseConnection, type Driver, PGliteDialect, type TransactionSettings } from 'kysely';

/**
 * Kysely's PGlite dialect with its one connection given out to one user at a time. Unguarded, a query made beside an
 * open transaction would run inside that transaction, and a second transaction would overwrite the first one's handles.
 */
export class EmbeddedDialect extends PGliteDialect {
  override createDriver(): Driver {
    return new ExclusiveDriver(super.createDriver());
  }
}

class ExclusiveDriver implements Driver {
  readonly #inner: Driver;
  #free: Promise<void> = Promise.resolve();
  #release: () => void = () => undefined;

  constructor(inner: Driver) {
    this.#inner = inner;
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const turn = this.#free;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#free = promise;
    await turn;
    this.#release = resolve;
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
