import { vi } from 'vitest';
import { archive, type RawBatch, rawLog } from '../../../edge/logs/raw-log.ts';
import type { RequestRecord } from '../../../edge/logs/request-record.ts';
import type { Sent } from './visits.ts';

/** For how many messages, and how long, the queue's consumer waits. */
interface Delivery {
  readonly maxBatchSize: number;
  readonly maxBatchTimeoutMs: number;
}

/** Messages to the queue and objects in the bucket, for the requests of one isolate at these times. */
export async function countRawLogs(
  requests: readonly Sent[],
  { maxBatchSize, maxBatchTimeoutMs }: Delivery,
): Promise<{ messages: number; objects: number }> {
  vi.useFakeTimers({ now: Date.parse('2026-01-01T00:00:00Z') });
  try {
    const messages: { readonly at: number; readonly batch: RawBatch }[] = [];
    const work: Promise<unknown>[] = [];
    const send = async (batch: RawBatch) => {
      // An empty batch is sent, too, and paid for.
      messages.push({ at: Date.now(), batch });
    };
    const keep = rawLog({ send }, Date.now, () => undefined);
    const start = Date.now();
    for (const { at } of requests) {
      await vi.advanceTimersByTimeAsync(start + at - Date.now());
      keep(recordAt(Date.now()), (running) => work.push(running));
    }
    await vi.advanceTimersByTimeAsync(60_000);
    await Promise.all(work);

    let objects = 0;
    const put = async () => {
      objects += 1;
    };
    const waiting = [...messages];
    while (waiting.length > 0) {
      const until = (waiting[0]?.at ?? 0) + maxBatchTimeoutMs;
      const size = waiting.findIndex(({ at }) => at > until);
      const delivery = waiting.splice(0, Math.min(maxBatchSize, size === -1 ? waiting.length : size));
      const delivered = delivery.map(({ batch }) => ({
        body: batch,
        attempts: 1,
        ack: () => undefined,
        retry: () => undefined,
      }));
      await archive({ messages: delivered }, { put }, () => undefined);
    }
    return { messages: messages.length, objects };
  } finally {
    vi.useRealTimers();
  }
}

const recordAt = (at: number): RequestRecord => ({
  time: new Date(at).toISOString(),
  requestId: 'request-1',
  method: 'GET',
  route: '/boot',
  status: 200,
  duration: 1,
  site: 'shop',
  container: null,
  plugins: {},
  cache: null,
  colo: 'AMS',
  country: 'NL',
  signals: null,
  error: null,
  cause: null,
  bytesIn: 0,
  bytesOut: null,
  bot: false,
  consent: null,
  events: {},
  counters: {},
  webContainerVersion: null,
  probe: false,
});
