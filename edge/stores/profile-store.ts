import { type ProfileRecord, type ProfileStore, profileRecord } from '../../plugins/contract.ts';
import { parseJson } from '../base/json.ts';
import { within } from '../base/single-flight.ts';
import type { EventLog } from '../logs/request-record.ts';

/** The part of Workers KV that profiles need. */
export interface ProfileKv {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options: { expirationTtl: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/** A profile that isn't seen for 400 days is forgotten, as browsers forget its id; in seconds. */
const LIFE = 34_560_000;
/** How long an answer waits for the store, in milliseconds: the page mustn't hang on what it can do without. */
const READ_PATIENCE = 1000;
const WRITE_PATIENCE = 50;

/** The profiles of one site, for one request: a store that fails is logged, and nothing is read or kept. */
export function profileStore(
  kv: ProfileKv,
  siteId: string,
  waitUntil: (work: Promise<unknown>) => void,
  log: EventLog,
): ProfileStore {
  const key = (id: string) => `${siteId}:${id}`;
  const failed = (error: unknown) => log('store_failed', { store: 'COOKIES', error: String(error) });
  return {
    async read(id) {
      try {
        const text = await within(kv.get(key(id)), READ_PATIENCE);
        return typeof text === 'string' ? parse(text) : text;
      } catch (error) {
        failed(error);
        return undefined;
      }
    },
    async write(id, record) {
      const work =
        record === null
          ? kv.delete(key(id))
          : kv.put(key(id), JSON.stringify(record), { expirationTtl: LIFE });
      const done = work.catch(failed);
      waitUntil(done);
      await within(done, WRITE_PATIENCE);
    },
  };
}

/** A record that can't be read is as good as none: the next write replaces it. */
function parse(text: string): ProfileRecord | null {
  return profileRecord.safeParse(parseJson(text)).data ?? null;
}
