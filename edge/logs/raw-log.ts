import type { EventLog, RequestRecord, WaitUntil } from './request-record.ts';

/** Records that travel together. However often it is sent or delivered, its id makes it the same object of the archive. */
export interface RawBatch {
  readonly id: string;
  readonly records: readonly RequestRecord[];
}

/** The sending half of Workers Queues; a message may have 128 KB, and 50 of the longest records have two thirds of it. */
export interface RawLogQueue {
  send(batch: RawBatch, options: { contentType: 'json' }): Promise<unknown>;
}

/** The parts of a delivery of Workers Queues, and of an R2 bucket, that the archive needs. */
export interface RawDelivery {
  readonly messages: readonly {
    readonly body: RawBatch;
    /** From 1. */
    readonly attempts: number;
    ack(): void;
    retry(options: { delaySeconds: number }): void;
  }[];
}
export interface RawBucket {
  put(key: string, text: string): Promise<unknown>;
}

const MAX_RECORDS = 50;
/** How long a record waits for others, in milliseconds. */
const LINGER = 1000;
/** Batches kept in memory while the queue refuses them; beyond, the oldest is dropped, and said to be. */
const MAX_UNSENT = 20;
/** The longest pause between two deliveries, in seconds. */
const MAX_PAUSE = 300;

/**
 * Collects an isolate's records and sends them together, because a send for each would cost more than the requests
 * themselves. An evicted isolate loses what it hadn't sent: at most the records of one second.
 */
export function rawLog(queue: RawLogQueue, now: () => number, log: EventLog) {
  let records: RequestRecord[] = [];
  let unsent: RawBatch[] = [];
  /** A timer dies with the request that set it; past this time another one is set. */
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
    // Now and then the last batch has just gone, and an empty one follows: no object comes of it.
    const batches = [...unsent, take()];
    unsent = [];
    await Promise.all(batches.map(send));
  }

  return (record: RequestRecord, waitUntil: WaitUntil): void => {
    records.push(record);
    if (records.length >= MAX_RECORDS) {
      waitUntil(send(take()));
    } else if (now() >= timerUntil) {
      timerUntil = now() + LINGER;
      waitUntil(new Promise((resolve) => setTimeout(resolve, LINGER)).then(sendAll));
    }
  };
}

/** Writes delivered batches to the archive. One that can't be written is delivered again, later each time. */
export async function archive({ messages }: RawDelivery, bucket: RawBucket, log: EventLog): Promise<void> {
  await Promise.all(
    messages.map(async (message) => {
      const { attempts } = message;
      try {
        const objects = rawObjects(message.body);
        await Promise.all(objects.map(([key, text]) => bucket.put(key, text)));
        message.ack();
      } catch (error) {
        log('raw_log_retried', { attempts, error: String(error) });
        message.retry({ delaySeconds: Math.min(2 ** (attempts - 1), MAX_PAUSE) });
      }
    }),
  );
}

/** `raw/dt=YYYY-MM-DD/<time>-<id>.ndjson`: one object, or two where the batch holds records of two days (UTC). */
function rawObjects({ id, records }: RawBatch): [key: string, text: string][] {
  const days = Map.groupBy(records, ({ time }) => time.slice(0, 10));
  return [...days].map(([day, own]) => [
    `raw/dt=${day}/${own[0]?.time.replaceAll(':', '')}-${id}.ndjson`,
    own.map((record) => `${JSON.stringify(record)}\n`).join(''),
  ]);
}
