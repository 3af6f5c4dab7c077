import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A record as the edge writes it, of a request at `time` (ISO 8601). */
export function recordAt(time: string, fields: Fields = {}): Record<string, unknown> {
  return {
    time,
    requestId: crypto.randomUUID(),
    method: 'GET',
    route: '/g/collect',
    status: 200,
    duration: 12,
    site: 'shop',
    container: null,
    plugins: {},
    cache: null,
    colo: 'FRA',
    country: 'DE',
    signals: null,
    error: null,
    cause: null,
    bytesIn: 10,
    bytesOut: 100,
    bot: false,
    consent: 'all',
    events: { page_view: 2 },
    webContainerVersion: null,
    probe: false,
    ...fields,
  };
}

/** The records of one batch, numbered by the edge. */
export function batchOf(records: readonly Fields[], batch: string = crypto.randomUUID()): Fields[] {
  return records.map((record, index) => ({ ...record, batch, index }));
}

export const ndjson = (records: readonly Fields[]): string =>
  records.map((record) => `${JSON.stringify(record)}\n`).join('');

/** The edge's key for an object of the raw logs, by the time of its first record. */
export function keyAt(time: string, id: string = crypto.randomUUID()): string {
  return `raw/dt=${time.slice(0, 10)}/${time.replaceAll(':', '')}-${id}.ndjson`;
}

/** Writes one object. Resolves to its key. */
export async function deliver(
  objects: RawObjects,
  records: readonly Fields[],
  key: string = keyAt(String(records[0]?.time)),
): Promise<string> {
  await objects.write(key, Buffer.from(ndjson(records)));
  return key;
}
