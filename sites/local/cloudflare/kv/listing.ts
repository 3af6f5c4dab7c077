import type { KvList, KvListedKey, KvListOptions, KvStore } from '../api/stores.ts';

const PAGE = 1000;

/** One change of a listing: a key as it will be, or its absence. */
interface ListedChange {
  readonly name: string;
  readonly key: KvListedKey | null;
}

/** A page of the keys that `store` will have after `changes`. Its cursors are not those of `store`. */
export async function listWithChanges(
  store: KvStore,
  changes: readonly ListedChange[],
  { prefix = '', limit = PAGE, cursor }: KvListOptions = {},
): Promise<KvList> {
  const after = cursor === undefined ? null : Buffer.from(cursor, 'base64url').toString();
  const keys = new Map((await everyKey(store, prefix)).map((key) => [key.name, key]));
  for (const { name, key } of changes) {
    if (!name.startsWith(prefix)) continue;
    if (key === null) keys.delete(name);
    else keys.set(name, key);
  }
  const rest = [...keys.values()]
    .filter(({ name }) => after === null || compareBytes(name, after) > 0)
    .sort((a, b) => compareBytes(a.name, b.name));
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  return rest.length > limit && last !== undefined
    ? { keys: page, cursor: Buffer.from(last.name).toString('base64url'), complete: false }
    : { keys: page, complete: true };
}

async function everyKey(store: KvStore, prefix: string): Promise<KvListedKey[]> {
  const keys: KvListedKey[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ prefix, limit: PAGE, ...(cursor === undefined ? {} : { cursor }) });
    keys.push(...page.keys);
    cursor = page.complete ? undefined : page.cursor;
  } while (cursor !== undefined);
  return keys;
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}
