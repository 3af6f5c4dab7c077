import { z } from 'zod';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { type Identity, readMark } from '../../../base/ownership.ts';
import { counted } from '../../../base/text.ts';
import { KV_NAMESPACES, type KvNamespace } from '../../../plugins/document.ts';
import { type CloudflareClient, KV_PAGE, MAX_KV_BULK } from '../../clients/cloudflare.ts';
import type { KvKey } from '../../clients/cloudflare-answers.ts';

const markedMetadata = z.object({ mark: z.string() });

/** The owner of a key and the hash of what was applied, from the mark in its metadata. */
export function readKeyMark(identity: Identity, { metadata }: KvKey) {
  return readMark(identity, markedMetadata.safeParse(metadata).data?.mark);
}

/** The binding of the namespace with visitors' profiles, which only the edge writes; keys are `<siteId>:<id>`. */
export const PROFILES = 'COOKIES' as const;

/** The title that `wrangler` gives a namespace. */
export function namespaceTitle(scriptName: string, namespace: KvNamespace | typeof PROFILES): string {
  return `${scriptName}-${namespace}`;
}

/** The edge worker's KV namespaces; the appliers of KV and of routes both read them. */
export interface EdgeStore {
  id(namespace: KvNamespace, signal: AbortSignal): Promise<string>;
  /** What is kept of a visitor of a site, as the edge wrote it; `null`: nothing. */
  profile(site: string, visitor: string, signal: AbortSignal): Promise<string | null>;
  /** Deletes what is kept of a visitor. Succeeds also if there is nothing. */
  forgetProfile(site: string, visitor: string, signal: AbortSignal): Promise<void>;
  /** Deletes the profiles of a site's visitors. */
  forgetProfiles(site: string, signal: AbortSignal): Promise<void>;
  /**
   * All keys with their metadata; with `names`, at least these. Equal calls in one tick of the event loop get the
   * result of one listing.
   */
  keys(namespace: KvNamespace, signal: AbortSignal, names?: ReadonlySet<string>): Promise<readonly KvKey[]>;
}

/** `pageSize`: keys in one page of a listing; a namespace of one page is always listed as a whole. */
export function edgeStore(client: CloudflareClient, scriptName: string, pageSize = KV_PAGE): EdgeStore {
  let ids: Promise<NamespaceIds> | undefined;
  const listings = new Map<string, Promise<readonly KvKey[]>>();
  /** Pages of the last whole listing. */
  const pages = new Map<KvNamespace, number>();

  /** One call for all concurrent callers, and for later ones if it succeeds. */
  async function namespaces(signal: AbortSignal): Promise<NamespaceIds> {
    ids ??= findNamespaces(client, scriptName, signal);
    const asked = ids;
    try {
      return await asked;
    } catch (error) {
      if (ids === asked) ids = undefined;
      throw error;
    }
  }

  async function id(namespace: KvNamespace, signal: AbortSignal): Promise<string> {
    const found = (await namespaces(signal)).documents.get(namespace);
    if (found === undefined) throw new Error(`${namespace} is not one of the edge's namespaces`);
    return found;
  }

  async function list(namespace: KvNamespace, signal: AbortSignal, names: ReadonlySet<string> | null) {
    const namespaceId = await id(namespace, signal);
    if (names === null) {
      const keys = await client.kvKeys(namespaceId, signal);
      pages.set(namespace, Math.ceil(keys.length / pageSize));
      return keys;
    }
    const found = await Promise.all([...names].map((name) => client.kvKeys(namespaceId, signal, name)));
    // A search by prefix also finds longer names, which several searches may return.
    return found
      .flat()
      .filter(({ name }) => names.has(name))
      .filter(firstOfName());
  }

  return {
    id,
    async profile(site, visitor, signal) {
      const { profiles } = await namespaces(signal);
      return profiles === null ? null : await client.kvText(profiles, `${site}:${visitor}`, signal);
    },
    async forgetProfile(site, visitor, signal) {
      const { profiles } = await namespaces(signal);
      if (profiles === null) return;
      const left = await client.deleteKv(profiles, [`${site}:${visitor}`], signal);
      if (left.length > 0) throw new RetryableError(`a visitor's profile of ${site} is still there`);
    },
    async forgetProfiles(site, signal) {
      const { profiles } = await namespaces(signal);
      if (profiles === null) return;
      const names = (await client.kvKeys(profiles, signal, `${site}:`)).map(({ name }) => name);
      for (let start = 0; start < names.length; start += MAX_KV_BULK) {
        const left = await client.deleteKv(profiles, names.slice(start, start + MAX_KV_BULK), signal);
        if (left.length > 0)
          throw new RetryableError(
            `${site}: ${counted(left.length, 'visitor’s profile is', 'visitors’ profiles are')} still there`,
          );
      }
    },
    keys(namespace, signal, names) {
      // List by name, with one call per name, if the namespace has more pages than there are names.
      const some = names !== undefined && names.size < (pages.get(namespace) ?? 1) ? names : null;
      const question = JSON.stringify([namespace, some && [...some].sort()]);
      const running = listings.get(question);
      if (running !== undefined) return running;
      const listing = list(namespace, signal, some);
      // Forget the listing in the next tick: a caller that has written since must not get a listing from before its
      // write.
      setImmediate(() => listings.delete(question));
      listings.set(question, listing);
      return listing;
    },
  };
}

function firstOfName(): (key: KvKey) => boolean {
  const seen = new Set<string>();
  return ({ name }) => !seen.has(name) && seen.add(name).has(name);
}

interface NamespaceIds {
  readonly documents: ReadonlyMap<KvNamespace, string>;
  /** `null`: this worker stores no profiles. */
  readonly profiles: string | null;
}

/** Ids by title. A worker is bound to ids, so they don't change. */
async function findNamespaces(
  client: CloudflareClient,
  scriptName: string,
  signal: AbortSignal,
): Promise<NamespaceIds> {
  const byTitle = new Map((await client.namespaces(signal)).map(({ title, id }) => [title, id]));
  const documents = new Map(
    KV_NAMESPACES.map((namespace) => {
      const title = namespaceTitle(scriptName, namespace);
      const id = byTitle.get(title);
      if (id === undefined)
        throw new TerminalError(`KV namespace ${title} doesn't exist; deploy the worker first`);
      return [namespace, id];
    }),
  );
  return { documents, profiles: byTitle.get(namespaceTitle(scriptName, PROFILES)) ?? null };
}
