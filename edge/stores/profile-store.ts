import { isProfileRecord, type ProfileRecord, type ProfileStore } from '../../plugins/profile.ts';
import { parseJson } from '../base/json.ts';
import { within } from '../base/single-flight.ts';
import type { EventLog } from '../logs/event-log.ts';
import { MIN_TTL_SECONDS, PROFILE_READ_TIMEOUT_MS, PROFILE_TTL_SECONDS } from './limits.ts';

/** The part of Workers KV that profiles need. */
export interface ProfileKv {
  get(key: string): Promise<string | null>;
  put(key: string, value: string, options: { expirationTtl: number }): Promise<void>;
  delete(key: string): Promise<void>;
}

interface ProfileDependencies {
  readonly waitUntil: (work: Promise<unknown>) => void;
  readonly now: () => number;
  readonly log: EventLog;
  /** Until when the answer waits for a write. */
  readonly writtenUntil: number;
}

/** The profiles of one site, for one request. A call that fails is logged, and reads or stores nothing. */
export function profileStore(
  kv: ProfileKv,
  siteId: string,
  { waitUntil, now, log, writtenUntil }: ProfileDependencies,
): ProfileStore {
  const key = (id: string) => `${siteId}:${id}`;
  const failed = (error: unknown) => log('store_failed', { store: 'COOKIES', error: String(error) });
  async function finish(work: Promise<void>): Promise<void> {
    const done = work.catch(failed);
    waitUntil(done);
    await within(done, Math.max(0, writtenUntil - now()));
  }
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
    write(id, record, endsAt) {
      const left = Math.ceil((endsAt - now()) / 1000);
      const expirationTtl = Math.min(Math.max(left, MIN_TTL_SECONDS), PROFILE_TTL_SECONDS);
      return finish(kv.put(key(id), JSON.stringify(record), { expirationTtl }));
    },
    delete: (id) => finish(kv.delete(key(id))),
  };
}

/** An invalid record counts as missing: the next write replaces it. */
function parse(text: string): ProfileRecord | null {
  const value = parseJson(text);
  return isProfileRecord(value) ? value : null;
}
