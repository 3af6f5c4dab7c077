import { LRUCache } from 'lru-cache';
import type { Adapter, AdapterFactory, AdapterPayload } from 'oidc-provider';

/** The most sessions, codes and tokens that are kept. */
const MOST = 2_000;

/**
 * Keeps what the provider issues in memory. A restart of the instance ends the provider's own sessions: a login is one
 * click.
 */
export function memoryAdapter(): AdapterFactory {
  const kept = new LRUCache<string, AdapterPayload>({ max: MOST });
  const find = (matches: (payload: AdapterPayload) => boolean) =>
    [...kept].find(([, payload]) => matches(payload));

  return (model): Adapter => ({
    async upsert(id, payload, expiresIn) {
      kept.set(`${model}:${id}`, payload, expiresIn ? { ttl: expiresIn * 1000 } : {});
    },
    async find(id) {
      return kept.get(`${model}:${id}`);
    },
    async findByUid(uid) {
      return find((payload) => payload.kind === 'Session' && payload.uid === uid)?.[1];
    },
    // The flow for devices is off.
    async findByUserCode() {
      return undefined;
    },
    async consume(id) {
      const payload = kept.get(`${model}:${id}`);
      if (payload !== undefined) payload.consumed = Math.floor(Date.now() / 1000);
    },
    async destroy(id) {
      kept.delete(`${model}:${id}`);
    },
    async revokeByGrantId(grantId) {
      for (const [key, payload] of kept) if (payload.grantId === grantId) kept.delete(key);
    },
  });
}
