import { contentHash } from '../../../base/ownership.ts';
import type { RecordSpec } from './desired.ts';

type Content = Omit<RecordSpec, 'type'> & { readonly type: string };

/**
 * The hash in the mark of a record that stays although a wildcard covers its name (wildcard.ts). The mark has no
 * separate part for this, so an older release without this rule sees a wrong hash and writes the record again. If the
 * mark had a part that is unknown to that release, the release would treat the record as foreign.
 */
export function keptHash(record: Content): string {
  return contentHash({ ...contentOf(record), kept: true });
}

/** What the hash in a mark says of the marked record. `edited`: the record has changed since it was written. */
export function markedAs(
  record: Content,
  hash: string | null,
  plain = plainHash(record),
): 'plain' | 'kept' | 'edited' {
  if (hash === null) return 'edited';
  if (plain.startsWith(hash)) return 'plain';
  return keptHash(record).startsWith(hash) ? 'kept' : 'edited';
}

/** The hash of the resource that a record was written for. */
export function plainHash(record: Content): string {
  return contentHash(contentOf(record));
}

function contentOf({ name, type, content, ttl, proxied }: Content): Content {
  return { name, type, content, ttl, proxied };
}
