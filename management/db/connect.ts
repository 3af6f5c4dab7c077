import { PGlite } from '@electric-sql/pglite';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Database, Tables } from './database.ts';
import { ensureCluster } from './embedded-cluster.ts';
import { EmbeddedDialect } from './embedded-dialect.ts';

const POOL_SIZE = 10;
/** How long a query waits for a connection: while all are in use, or the server doesn't answer. */
const CONNECT_MS = 30_000;

/** PostgreSQL by URL. `onIdleError` gets the errors of idle connections that break; the pool replaces them. */
export function connectPostgres(url: string, onIdleError: (error: Error) => void): Database {
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE, connectionTimeoutMillis: CONNECT_MS });
  pool.on('error', onIdleError);
  pool.on('connect', answerByCallback);
  // The pool listens only to idle connections, and an error event without a listener ends the process. A connection that
  // breaks between two queries of a transaction makes the next query fail.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}

/**
 * pg's own promise and its query refer to each other. Because of that, the rows of hundreds of queries outlive the young
 * heap's collections until a full one: pauses of 10 to 20 ms every second under load.
 */
function answerByCallback(client: pg.PoolClient): void {
  const query = client.query.bind(client);
  Object.assign(client, {
    query: (text: string, values: unknown[]) =>
      new Promise((resolve, reject) => {
        query(text, values, (error, result) => (error ? reject(error) : resolve(result)));
      }),
  });
}

/** PGlite in this process, stored under `dir`, or in memory without one. */
export function connectEmbedded(dir?: string): Database {
  return new Kysely<Tables>({
    dialect: new EmbeddedDialect({
      pglite: async () => {
        if (dir === undefined) return await PGlite.create();
        await ensureCluster(dir);
        return await PGlite.create(dir);
      },
    }),
  });
}
