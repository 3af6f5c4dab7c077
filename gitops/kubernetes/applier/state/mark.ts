import { formatMark, type Identity, type Ownership, readMark } from '../../../../base/ownership.ts';
import type { KubernetesObject } from '../../client/kinds.ts';

/** The annotation with the ownership mark (docs/reconciler.md, rule 5). */
const MARK = 'tagyard/mark';
/** The annotation with the ordinal of the revision that was applied last. */
const ORDINAL = 'tagyard/ordinal';
/** The field manager of everything that a manifest asks for. */
export const MANAGER = 'tagyard';
/** The field manager with which earlier versions of Tagyard have set a Deployment's number of pods. */
export const INITIAL_MANAGER = 'tagyard-initial';
/** In a mark in place of a site: the object belongs to a client. */
export const NO_SITE = '-';
/** In a mark in place of a hash: the object has an earlier template than its manifest asks for. */
export const EARLIER = '00000000';

interface MarkContent {
  readonly identity: Identity;
  readonly site: string;
  readonly hash: string;
  /** `null`: unknown. */
  readonly ordinal: number | null;
}

export function withMark(
  object: KubernetesObject,
  { identity, site, hash, ordinal }: MarkContent,
): KubernetesObject {
  const { metadata } = object;
  const annotations = {
    ...metadata.annotations,
    [MARK]: formatMark(identity, site, hash),
    ...(ordinal === null ? {} : { [ORDINAL]: String(ordinal) }),
  };
  return { ...object, metadata: { ...metadata, annotations } };
}

export function markOf(
  identity: Identity,
  { metadata }: Pick<KubernetesObject, 'metadata'>,
): { owner: Ownership; hash: string | null } {
  return readMark(identity, metadata.annotations?.[MARK]);
}

export function isOurs(identity: Identity, object: Pick<KubernetesObject, 'metadata'>): boolean {
  return markOf(identity, object).owner.kind === 'ours';
}

/** The ordinal of the revision that was applied last; `null`: the object has none. */
export function ordinalOf({ metadata }: Pick<KubernetesObject, 'metadata'>): number | null {
  const text = metadata.annotations?.[ORDINAL];
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : null;
}
