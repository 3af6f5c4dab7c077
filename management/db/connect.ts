import type { PGlite } from '@electric-sql/pglite';
import { PostgresDialect } from 'kysely';
import type pg from 'pg';
import { optional } from '../../base/runtime/optional.ts';
import { ConnectedDatabase } from './connected.ts';
import { EmbeddedDialect } from './embedded-dialect.ts';
import { listenOnEmbedded, listenOnPostgres } from './listen.ts';
import { DatabaseUnavailableError, isAway } from './unavailable.ts';

const POOL_SIZE = 10;
/** How long a query waits for a connection if all are in use or the server doesn't answer. */
const CONNECT_MS = 30_000;

/** PostgreSQL by URL. `onIdleError` gets the errors of idle connections; the pool replaces the broken ones. */
export function connectPostgres(url: string, onIdleError: (error: Error) => void): ConnectedDatabase {
  const pool = async () => {
    const { default: pg } = await import('pg');
    const opened = new pg.Pool({
      connectionString: url,
      max: POOL_SIZE,
      connectionTimeoutMillis: CONNECT_MS,
    });
    opened.on('error', onIdleError);
    opened.on('connect', answerByCallback);
    // The pool handles errors of idle connections only, and an error event without a listener ends the process. This
    // listener can ignore it: if the connection breaks between a transaction's queries, the next query fails.
    opened.on('connect', (client) => client.on('error', () => undefined));
    const connect = () =>
      opened.connect().catch((error: Error) => {
        throw new DatabaseUnavailableError(error);
      });
    return { options: opened.options, connect, end: () => opened.end() };
  };
  return new ConnectedDatabase(new PostgresDialect({ pool }), listenOnPostgres(url, onIdleError));
}

/**
 * Makes each query's promise here, from pg's callback. pg's own promise and its query refer to each other. Minor
 * garbage collections therefore keep the rows of hundreds of queries until a full collection, which pauses the process
 * for 10 to 20 ms every second under load.
 */
function answerByCallback(client: pg.PoolClient): void {
  const query = client.query.bind(client);
  Object.assign(client, {
    query: (text: string, values: unknown[]) =>
      new Promise((resolve, reject) => {
        query(text, values, (error, result) => {
          if (error) reject(isAway(error) ? new DatabaseUnavailableError(error) : error);
          else resolve(result);
        });
      }),
  });
}

/**
 * PGlite's options. By default PGlite takes as much memory as PostgreSQL does on a server: 128 MB of buffers, and room
 * for a hundred connections, although it has one.
 */
export const SMALL_ENGINE = ['shared_buffers=8MB', 'max_connections=5'].flatMap((setting) => ['-c', setting]);

/** PGlite in this process, stored under `dir`, or in memory without `dir`. */
export function connectEmbedded(dir?: string): ConnectedDatabase {
  return embeddedDatabase(async () => {
    const { PGlite } = await optional('@electric-sql/pglite', () => import('@electric-sql/pglite'));
    if (dir === undefined) return await PGlite.create();
    const { ensureCluster } = await import('./embedded-cluster.ts');
    await ensureCluster(dir);
    return await PGlite.create(dir, { startParams: [...PGlite.defaultStartParams, ...SMALL_ENGINE] });
  });
}

/** The database of an embedded engine. The first use opens the engine. */
export function embeddedDatabase(create: () => Promise<PGlite>): ConnectedDatabase {
  let engine: Promise<PGlite> | undefined;
  const open = () => {
    engine ??= create();
    return engine;
  };
  return new ConnectedDatabase(new EmbeddedDialect({ pglite: open }), listenOnEmbedded(open));
}
