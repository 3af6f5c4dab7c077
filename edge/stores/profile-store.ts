import { type ProfileRecord, type ProfileStore, profileRecord } from '../../plugins/contract.ts';
import { parseJson } from '../base/json.ts';
import { within } from '../base/single-flight.ts';
import type { EventLog } from '../logs/event-log.ts';
import { PROFILE_READ_TIMEOUT_MS, PROFILE_TTL_SECONDS, PROFILE_WRITE_TIMEOUT_MS } from './limits.ts';

/** The part of Workers KV that profiles need. */
export interface ProfileKv {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options: { expirationTtl: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

/** The profiles of one site, for one request. A call that fails is logged, and reads or stores nothing. */
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
        const text = await within(kv.get(key(id)), PROFILE_READ_TIMEOUT_MS);
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
          : kv.put(key(id), JSON.stringify(record), { expirationTtl: PROFILE_TTL_SECONDS });
      const done = work.catch(failed);
      waitUntil(done);
      await within(done, PROFILE_WRITE_TIMEOUT_MS);
    },
  };
}

/** An invalid record counts as missing: the next write replaces it. */
function parse(text: string): ProfileRecord | null {
  return profileRecord.safeParse(parseJson(text)).data ?? null;
}
