import { once } from 'node:events';
import type { PGlite } from '@electric-sql/pglite';
import { sql } from 'kysely';
import { backoffMs } from '../../gitops/base/backoff.ts';
import { systemClock } from '../../gitops/base/clock.ts';
import { CHANNEL, type Listen } from './connected.ts';

const RETRIES = { firstMs: 200, longestMs: 10_000 };
/** Detects a server that vanished without closing the connection. */
const KEEP_ALIVE_MS = 10_000;

/** Listens on a separate connection, outside the pool. `onError` gets the error of a connection that breaks. */
export function listenOnPostgres(url: string, onError: (error: Error) => void): Listen {
  return async (_db, { onNotice, onListening }, signal) => {
    const { default: pg } = await import('pg');
    for (let failures = 0; !signal.aborted; failures += 1) {
      const client = new pg.Client({
        connectionString: url,
        keepAlive: true,
        keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      });
      client.on('error', onError);
      const closed = new AbortController();
      client.once('end', () => closed.abort());
      try {
        await client.connect();
        await client.query(`listen ${CHANNEL}`);
        failures = 0;
        onListening();
        // Only after `onListening`, which must come first: pg can emit a notice before the query's promise resolves.
        client.on('notification', ({ payload }) => onNotice(payload ?? ''));
        await aborted(AbortSignal.any([signal, closed.signal]));
      } catch (error) {
        onError(error instanceof Error ? error : new Error(String(error)));
      }
      // Ending a connection that is already broken fails.
      await client.end().catch(() => undefined);
      if (!signal.aborted) {
        await systemClock.sleep(backoffMs(failures + 1, Math.random, RETRIES), { signal, ref: false });
      }
    }
  };
}

/** Listens on the only connection of an embedded database. */
export function listenOnEmbedded(open: () => Promise<PGlite>): Listen {
  return async (db, { onNotice, onListening }, signal) => {
    await sql`listen ${sql.id(CHANNEL)}`.execute(db);
    const engine = await open();
    onListening();
    const stop = engine.onNotification((_channel, notice) => onNotice(notice));
    await aborted(signal);
    stop();
  };
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}
