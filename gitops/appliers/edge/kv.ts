import { bisect } from '../../../base/bisect.ts';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { coalesce } from '../../../base/coalesce.ts';
import { RetryableError } from '../../../base/errors.ts';
import { formatMark, type Identity } from '../../../base/ownership.ts';
import { withSharedSignal } from '../../../base/shared-signal.ts';
import { KV_NAMESPACES, type KvNamespace } from '../../../plugins/document.ts';
import type { DocumentSettings } from '../../../sites/manifest/documents.ts';
import { type CloudflareClient, MAX_KV_BULK } from '../../clients/cloudflare.ts';
import { CloudflareRefusal } from '../../clients/cloudflare-errors.ts';
import type { Applier, Change, Observed } from '../contract.ts';
import { planResources } from '../plan.ts';
import { desiredPairs, KV, type KvSpec, namesIn, pairKey } from './desired.ts';
import { type EdgeStore, readKeyMark } from './store.ts';

const WINDOW_MS = 20;
/** How many times a key is sent if bulk calls report it as unsuccessful. */
const ATTEMPTS = 3;
/** The pause before a key is sent again: KV accepts one write a second per key (docs/facts.md, Cloudflare Workers). */
const PAUSE_MS = 1100;

interface KvRef {
  readonly namespace: KvNamespace;
  readonly key: string;
}

interface Write extends KvRef {
  /** Unset: delete. */
  readonly pair?: { readonly value: string; readonly mark: string };
  readonly signal: AbortSignal;
}

interface KvApplierOptions {
  readonly client: CloudflareClient;
  readonly store: EdgeStore;
  readonly identity: Identity;
  readonly settings: DocumentSettings;
  readonly clock?: Clock;
}

/** What writes need. */
type Target = Required<Pick<KvApplierOptions, 'client' | 'store' | 'clock'>>;

/** The documents that the edge reads. It observes them by one listing per namespace and writes them by bulk calls. */
export function kvApplier(options: KvApplierOptions): Applier<KvSpec, KvRef> {
  const { client, store, identity, settings, clock = systemClock } = options;
  const target = { client, store, clock };
  const write = coalesce((writes: readonly Write[]) => flush(target, writes), { windowMs: WINDOW_MS });
  return {
    ...KV,
    desired: (manifest) => desiredPairs(manifest, settings),
    async observe(desired, signal, scope) {
      const wanted = new Set(desired.map(({ key }) => key));
      const listings = await Promise.all(
        KV_NAMESPACES.map(async (namespace) => {
          const names = scope && namesIn(namespace, [...wanted, ...scope.keys]);
          return { namespace, keys: await store.keys(namespace, signal, names) };
        }),
      );
      return listings.flatMap(({ namespace, keys }) =>
        keys.flatMap((listed): Observed<KvRef>[] => {
          const key = pairKey(namespace, listed.name);
          const { owner, hash } = readKeyMark(identity, listed);
          if (owner.kind === 'foreign' && !wanted.has(key)) return [];
          return [{ target: KV.target, key, owner, hash, ref: { namespace, key: listed.name } }];
        }),
      );
    },
    plan: (desired, observed) => planResources(desired, observed, KV),
    async apply({ site, desired, observed, ended }: Change<KvSpec, KvRef>, signal) {
      if (desired !== undefined) {
        const { namespace, key, value } = desired.spec;
        await write({
          namespace,
          key,
          pair: { value, mark: formatMark(identity, site, desired.hash) },
          signal,
        });
      } else if (observed !== undefined) {
        // Delete the profiles before the entry: after a crash in between, the next pass finds the entry and repeats
        // both.
        const forgets = ended && observed.ref.namespace === 'SITE_REGISTRY';
        if (forgets) await store.forgetProfiles(site, signal);
        await write({ ...observed.ref, signal });
      }
    },
  };
}

async function flush(
  target: Target,
  writes: readonly Write[],
): Promise<readonly PromiseSettledResult<void>[]> {
  const outcomes = new Map<Write, PromiseSettledResult<void>>();
  await withSharedSignal(
    writes.map(({ signal }) => signal),
    async (signal) => {
      const groups = Map.groupBy(writes, ({ namespace, pair }) => `${namespace} ${pair === undefined}`);
      for (const group of groups.values()) {
        for (let start = 0; start < group.length; start += MAX_KV_BULK) {
          const chunk = group.slice(start, start + MAX_KV_BULK);
          const settled = await sendGroup(target, chunk, signal);
          chunk.forEach((item, index) => {
            const outcome = settled[index];
            if (outcome !== undefined) outcomes.set(item, outcome);
          });
        }
      }
    },
  );
  return writes.flatMap((item) => outcomes.get(item) ?? []);
}

/**
 * Sends writes or deletes of one namespace in one call. Repeats it for unsuccessful keys once KV accepts them again,
 * and bisects it if it is refused.
 */
async function sendGroup(
  target: Target,
  group: readonly Write[],
  signal: AbortSignal,
): Promise<PromiseSettledResult<void>[]> {
  const unsuccessful = new Set<string>();
  const settled = await bisect(
    group,
    async (items) => {
      let rest = items;
      for (let attempt = 1; attempt <= ATTEMPTS && rest.length > 0; attempt += 1) {
        if (attempt > 1) await target.clock.sleep(PAUSE_MS, { signal });
        signal.throwIfAborted();
        const failed = new Set(await sendBulk(target, rest, signal));
        rest = rest.filter(({ key }) => failed.has(key));
      }
      for (const { key } of rest) unsuccessful.add(key);
    },
    (error) => error instanceof CloudflareRefusal && error.meaning === 'refused',
  );
  return settled.map((outcome, index) => {
    const key = group[index]?.key ?? '';
    if (!unsuccessful.has(key)) return outcome;
    return {
      status: 'rejected',
      reason: new RetryableError(`Cloudflare did not accept ${key} in ${ATTEMPTS} bulk calls`),
    };
  });
}

/** Returns the keys that Cloudflare reports as unsuccessful. Writing or deleting a pair twice does no harm. */
async function sendBulk({ client, store }: Target, items: readonly Write[], signal: AbortSignal) {
  const [first] = items;
  if (first === undefined) return [];
  const namespaceId = await store.id(first.namespace, signal);
  const pairs = items.flatMap(({ key, pair }) =>
    pair === undefined ? [] : [{ key, value: pair.value, metadata: { mark: pair.mark } }],
  );
  if (pairs.length > 0) return client.writeKv(namespaceId, pairs, signal);
  return client.deleteKv(
    namespaceId,
    items.map(({ key }) => key),
    signal,
  );
}
