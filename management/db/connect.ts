import { PGlite } from '@electric-sql/pglite';
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import type { Database, Tables } from './database.ts';
import { ensureCluster } from './embedded-cluster.ts';
import { EmbeddedDialect } from './embedded-dialect.ts';

const POOL_SIZE = 10;
/** How long a query may wait for a connection, be it that all are in use or that the server says nothing. */
const CONNECT_MS = 30_000;

/** PostgreSQL by URL. `onIdleError` hears of connections that break while nobody uses them; the pool replaces them. */
export function connectPostgres(url: string, onIdleError: (error: Error) => void): Database {
  const pool = new pg.Pool({ connectionString: url, max: POOL_SIZE, connectionTimeoutMillis: CONNECT_MS });
  pool.on('error', onIdleError);
  pool.on('connect', answerByCallback);
  // The pool listens only to connections that nobody has. One that breaks between two queries of a transaction fails the
  // next of them; an error event that nobody listens to would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return new Kysely<Tables>({ dialect: new PostgresDialect({ pool }) });
}

/**
 * The promise that pg itself makes of a query refers to the query, and the query to the promise. The rows of hundreds of
 * them outlive collections of the young heap for that, until a full one: pauses of 10 to 20 ms every second under load.
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

/** PGlite in this process, kept under `dir`, or in memory without one. */
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
