import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { PGlite } from '@electric-sql/pglite';
import { sql } from 'kysely';
import type pg from 'pg';
import { backoffMs } from '../../base/backoff.ts';
import { systemClock } from '../../base/clock.ts';
import { CHANNEL, type Listen } from './connected.ts';

const RETRIES = { firstMs: 200, longestMs: 10_000 };
/** Detects a server that vanished without closing the connection. */
const KEEP_ALIVE_MS = 10_000;

/** How long a notice to oneself may take. */
const PROOF_MS = 5_000;
/** Where no notices are delivered: milliseconds between two reads of what is new, and until listening is tried again. */
const POLL_MS = 2_000;
const TRY_AGAIN_MS = 60_000;

const UNDELIVERED =
  'notices of LISTEN are not delivered, as by PgBouncer in transaction mode: event streams read the database every 2 s instead. Set DATABASE_URL to the server itself, or to a pool in session mode';

/**
 * Listens on a separate connection, outside the pool. `onError` gets the error of a connection that breaks. A pooler may
 * accept LISTEN and deliver nothing: each connection sends itself a notice first, and without it, `onListening` is
 * called again and again, which reads what is new.
 */
export function listenOnPostgres(url: string, onError: (error: Error) => void): Listen {
  return async (_db, { onNotice, onListening }, signal) => {
    const { default: pg } = await import('pg');
    let isSaid = false;
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
        if (!(await isDelivered(client, url, signal))) {
          if (!isSaid && !signal.aborted) onError(new Error(UNDELIVERED));
          isSaid = true;
          await client.end().catch(() => undefined);
          for (let waited = 0; waited < TRY_AGAIN_MS && !signal.aborted; waited += POLL_MS) {
            onListening();
            await systemClock.sleep(POLL_MS, { signal, ref: false });
          }
          continue;
        }
        isSaid = false;
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

/** Whether a notice that another connection sends arrives at this one. */
async function isDelivered(listening: pg.Client, url: string, signal: AbortSignal): Promise<boolean> {
  const { default: pg } = await import('pg');
  const proof = `proof ${randomUUID()}`;
  const seen = new AbortController();
  const look = ({ payload }: pg.Notification) => {
    if (payload === proof) seen.abort();
  };
  listening.on('notification', look);
  const sender = new pg.Client({ connectionString: url });
  sender.on('error', () => undefined);
  try {
    await sender.connect();
    await sender.query(`notify ${CHANNEL}, '${proof}'`);
    await aborted(AbortSignal.any([signal, seen.signal, AbortSignal.timeout(PROOF_MS)]));
    return seen.signal.aborted;
  } finally {
    listening.off('notification', look);
    await sender.end().catch(() => undefined);
  }
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
