import { collectionPath } from './address.ts';
import type { ObjectSelection } from './contract.ts';
import { faultReason, KubernetesRetryable } from './errors.ts';
import type { Kind, KubernetesObject } from './kinds.ts';
import { objectOf } from './object-text.ts';
import type { Transport } from './transport.ts';

const METADATA_LIST =
  'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;q=0.1';
/** Asks for the metadata of one object. */
export const METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.1';
/** After this number of expired tokens, everything is read in one answer. */
const EXPIRED_TOKENS = 3;

interface ListPage {
  readonly items: readonly KubernetesObject[];
  readonly resourceVersion: string;
  /** The token of the next page; empty: this is the last one. */
  readonly next: string;
}

interface Listing {
  readonly items: readonly KubernetesObject[];
  /** The version from which a watch continues. */
  readonly resourceVersion: string;
}

/**
 * All selected objects, read in pages of one version. A page whose token has expired begins the listing again.
 * `pageSize`: objects in an answer.
 */
export async function listPaged(
  transport: Transport,
  selection: ObjectSelection,
  { pageSize, signal }: { pageSize: number; signal: AbortSignal },
): Promise<Listing> {
  for (let expired = 0; ; expired += 1) {
    try {
      return await listOnce(transport, selection, {
        signal,
        ...(expired < EXPIRED_TOKENS && { limit: String(pageSize) }),
      });
    } catch (error) {
      if (faultReason(error) !== 'expired' || expired >= EXPIRED_TOKENS) throw error;
    }
  }
}

async function listOnce(
  transport: Transport,
  selection: ObjectSelection,
  { limit, signal }: { limit?: string; signal: AbortSignal },
): Promise<Listing> {
  const items: KubernetesObject[] = [];
  for (let next = ''; ; ) {
    const { body } = await transport.call({
      method: 'GET',
      path: collectionPath(selection.kind, selection.namespace ?? null),
      query: {
        ...selectors(selection),
        ...(limit !== undefined && { limit }),
        ...(next !== '' && { continue: next }),
      },
      ...(selection.metadataOnly && { accept: METADATA_LIST }),
      what: `list ${selection.kind}`,
      isRepeatable: true,
      signal,
    });
    const page = pageOfList(body, selection.kind);
    if (page === null) {
      throw new KubernetesRetryable(
        'unavailable',
        `Kubernetes: list ${selection.kind}: the answer is no list`,
      );
    }
    items.push(...page.items);
    const { resourceVersion } = page;
    next = page.next;
    if (next === '') return { items, resourceVersion };
  }
}

/** What a watch asks for: all changes after the version, and bookmarks of the versions between them. */
export function watchCall(
  selection: ObjectSelection,
  { resourceVersion, seconds, signal }: { resourceVersion: string; seconds: number; signal: AbortSignal },
) {
  return {
    method: 'GET',
    path: collectionPath(selection.kind, selection.namespace ?? null),
    query: {
      ...selectors(selection),
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion,
      timeoutSeconds: String(seconds),
    },
    ...(selection.metadataOnly && { accept: METADATA }),
    what: `watch ${selection.kind}`,
    isRepeatable: true,
    signal,
  } as const;
}

function selectors({ labels, fields }: ObjectSelection): Record<string, string> {
  return {
    ...(labels !== undefined && { labelSelector: labels }),
    ...(fields !== undefined && { fieldSelector: fields }),
  };
}

/** A page of a listing; `null`: the answer is none. */
export function pageOfList(body: unknown, kind: Kind): ListPage | null {
  const page = body as {
    readonly items?: readonly unknown[] | null;
    readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
  } | null;
  const { resourceVersion, continue: next = '' } = page?.metadata ?? {};
  if (typeof resourceVersion !== 'string') return null;
  const items = (page?.items ?? []).map((item) => objectOf(item, { kind }));
  return { items, resourceVersion, next };
}
