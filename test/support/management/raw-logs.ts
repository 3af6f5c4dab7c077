import { Miniflare } from 'miniflare';
import { cloudflareObjects } from '../../../management/raw-objects/cloudflare.ts';
import type { RawObjects } from '../../../management/raw-objects/raw-objects.ts';
import { accountId, openState } from '../../../sites/local/cloudflare/api/state.ts';
import { API_PREFIX, buildEmulator } from '../../../sites/local/cloudflare/emulator.ts';

const TOKEN = 'raw-logs-token';
const BUCKET = 'tagyard-raw-logs';

export interface RawLogsBucket {
  readonly objects: RawObjects;
  /** Writes records as one object of their day, and returns its key. */
  put(records: readonly object[], key?: string): Promise<string>;
  close(): Promise<void>;
}

/** R2 in workerd, behind the emulator of Cloudflare's API, as an embedded instance reads it. */
export async function startRawLogs(): Promise<RawLogsBucket> {
  const runtime = new Miniflare({
    modules: true,
    script: 'export default { fetch: () => new Response() };',
    r2Buckets: ['RAW_LOGS'],
  });
  const bucket = await runtime.getR2Bucket('RAW_LOGS');
  const db = openState(':memory:');
  const emulator = buildEmulator({
    db,
    token: TOKEN,
    scripts: [],
    kv: () => {
      throw new Error('no namespace here');
    },
    buckets: {
      [BUCKET]: {
        get: async (key) => (await bucket.get(key))?.text() ?? null,
        put: async (key, text) => void (await bucket.put(key, text)),
        delete: (key) => bucket.delete(key),
        list: async (options) => {
          const { objects, ...page } = await bucket.list(options);
          return { objects, ...(page.truncated ? { cursor: page.cursor } : {}) };
        },
      },
    },
    onRoutes: async () => undefined,
  });
  const objects = cloudflareObjects({
    url: `${await emulator.listen({ host: '127.0.0.1', port: 0 })}${API_PREFIX}`,
    token: TOKEN,
    accountId: accountId(db),
    bucket: BUCKET,
    rate: 1e6,
    burst: 1e6,
  });
  return {
    objects,
    async put(records, key) {
      const [{ time } = { time: '' }] = records as readonly { readonly time: string }[];
      const name = `raw/dt=${time.slice(0, 10)}/${time.replaceAll(':', '')}-${crypto.randomUUID()}.ndjson`;
      const text = records.map((record) => `${JSON.stringify(record)}\n`).join('');
      await objects.write(key ?? name, Buffer.from(text));
      return key ?? name;
    },
    async close() {
      await emulator.close();
      await runtime.dispose();
      db.close();
    },
  };
}

/** A batch of records as the edge makes them: one for each of `records`, with its members. */
export function batchOf(
  records: readonly object[],
  batch: string = crypto.randomUUID(),
): Record<string, unknown>[] {
  return records.map((record, index) => ({ ...edgeRecord(record), batch, index }));
}

/** A record of the edge with these members. */
export function edgeRecord(members: object = {}): Record<string, unknown> {
  return {
    time: new Date().toISOString(),
    requestId: crypto.randomUUID(),
    method: 'GET',
    route: '/healthy',
    status: 200,
    duration: 3,
    site: 'shop',
    container: null,
    plugins: { custom_loader: 1 },
    cache: 'hit',
    colo: 'HEL',
    country: 'FI',
    signals: null,
    error: null,
    cause: null,
    bytesIn: 0,
    bytesOut: 512,
    bot: false,
    consent: 'all',
    events: { page_view: 1 },
    webContainerVersion: null,
    probe: false,
    ...members,
  };
}
