import type { EventLog, WaitUntil } from './event-log.ts';
import type { RequestRecord } from './request-record.ts';

/** Records of one send. The ids of a delivery's batches name the archive's object. */
export interface RawBatch {
  readonly id: string;
  readonly records: readonly RequestRecord[];
}

/** The sending half of Workers Queues. A message holds up to 128 KB; 50 records of maximum size take two thirds. */
interface RawLogQueue {
  send(batch: RawBatch, options: { contentType: 'json' }): Promise<unknown>;
}

/** The part of a Workers Queues delivery that the archive uses. */
interface RawDelivery {
  readonly messages: readonly {
    readonly body: RawBatch;
    /** Starts at 1. */
    readonly attempts: number;
    ack(): void;
    retry(options: { delaySeconds: number }): void;
  }[];
}

/** The part of an R2 bucket that the archive uses. */
interface RawBucket {
  put(key: string, text: string): Promise<unknown>;
}

const MAX_RECORDS = 50;
/** The longest time that a record waits for others before it is sent. */
const LINGER_MS = 1000;
/** Batches kept in memory while the queue refuses them. Beyond this number the oldest is dropped; the log says so. */
const MAX_UNSENT = 20;
/** The longest pause before messages are delivered again. */
const MAX_PAUSE_SECONDS = 300;
/** How long management may take for a delivery's lines. The next delivery waits for its answer. */
const INGEST_TIMEOUT_MS = 2000;

/**
 * Collects an isolate's records and sends them in batches: one send per record would cost more than the request itself.
 * An evicted isolate loses its unsent records: those of the last second, and batches that the queue refused.
 */
export function rawLog(queue: RawLogQueue, now: () => number, log: EventLog) {
  let records: RequestRecord[] = [];
  let unsent: RawBatch[] = [];
  /** The end of a request can cancel the timer that it set. After this time, the next record sets a new timer. */
  let timerUntil = 0;

  async function send(batch: RawBatch): Promise<void> {
    try {
      await queue.send(batch, { contentType: 'json' });
    } catch (error) {
      unsent.push(batch);
      const dropped = unsent.length > MAX_UNSENT ? unsent.shift()?.records.length : 0;
      log('raw_log_unsent', { error: String(error), dropped });
    }
  }

  function take(): RawBatch {
    const batch = { id: crypto.randomUUID(), records };
    records = [];
    return batch;
  }

  async function sendAll(): Promise<void> {
    timerUntil = 0;
    // The last batch can be empty, if a full one was sent just before. The archive writes no object for it.
    const batches = [...unsent, take()];
    unsent = [];
    await Promise.all(batches.map(send));
  }

  return (record: RequestRecord, waitUntil: WaitUntil): void => {
    records.push(record);
    if (records.length >= MAX_RECORDS) {
      waitUntil(send(take()));
    } else if (now() >= timerUntil) {
      timerUntil = now() + LINGER_MS;
      waitUntil(new Promise((resolve) => setTimeout(resolve, LINGER_MS)).then(sendAll));
    }
  };
}

/**
 * Writes the batches of a delivery to the archive as one object, or one for each day (UTC) if there are several. If it
 * can't be written, all are retried, after a longer pause each time; a malformed message is retried alone. Returns
 * the lines that it has written.
 */
export async function archive(
  { messages }: RawDelivery,
  bucket: RawBucket,
  log: EventLog,
): Promise<readonly string[]> {
  const valid = messages.filter(({ body }) => Array.isArray(body?.records));
  const retry = (message: RawDelivery['messages'][number], error: unknown) => {
    const { attempts } = message;
    log('raw_log_retried', { attempts, error: String(error) });
    message.retry({ delaySeconds: Math.min(2 ** (attempts - 1), MAX_PAUSE_SECONDS) });
  };
  for (const message of messages) if (!valid.includes(message)) retry(message, 'no records');
  try {
    const objects = await rawObjects(valid.map(({ body }) => body));
    await Promise.all(objects.map(([key, lines]) => bucket.put(key, lines.join(''))));
    for (const message of valid) message.ack();
    return objects.flatMap(([, lines]) => lines);
  } catch (error) {
    for (const message of valid) retry(message, error);
    return [];
  }
}

/**
 * Sends the lines of a delivery (a hundred messages at most) to management, for its live views. What fails is logged
 * and not sent again, because the archive has it.
 */
export async function ingest(
  lines: readonly string[],
  {
    INGEST_URL: url,
    INGEST_SECRET: secret,
  }: { readonly INGEST_URL?: string; readonly INGEST_SECRET?: string },
  log: EventLog,
): Promise<void> {
  if (!url || !lines[0]) return;
  try {
    const { ok, status } = await fetch(url, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}` },
      body: lines.join(''),
      signal: AbortSignal.timeout(INGEST_TIMEOUT_MS),
    });
    if (!ok) throw new Error(`status ${status}`);
  } catch (error) {
    log('ingest_lost', { records: lines.length, error: String(error) });
  }
}

/** `raw/dt=YYYY-MM-DD/<time>-<id>.ndjson`: one object for each day that the batches have records of. */
async function rawObjects(batches: readonly RawBatch[]): Promise<[key: string, lines: string[]][]> {
  // Sorted, so that a delivery that arrives twice gives the same object even if the order of its batches differs.
  const ordered = batches.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const records = ordered.flatMap(({ id: batch, records }) =>
    records.map((record, index) => ({ ...record, batch, index })),
  );
  const id = await deliveryId(ordered);
  const days = Map.groupBy(records, ({ time }) => time.slice(0, 10));
  return [...days].map(([day, own]) => [
    `raw/dt=${day}/${own[0]?.time.replaceAll(':', '')}-${id}.ndjson`,
    own.map((record) => `${JSON.stringify(record)}\n`),
  ]);
}

async function deliveryId(batches: readonly RawBatch[]): Promise<string> {
  const ids = batches.map(({ id }) => id);
  if (ids.length < 2) return `${ids}`;
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(`${ids}`));
  return Array.from(new Uint8Array(digest, 0, 16), (octet) => octet.toString(16).padStart(2, '0')).join('');
}
