import { type Identity, type Ownership, readMark } from '../../../base/ownership.ts';
import type { Observed, Resource } from '../contract.ts';
import { DNS, type RecordSpec, recordKey, recordSummary } from './desired.ts';
import { markedAs, plainHash } from './mark-hash.ts';

/** A record as a provider lists it. `comment` carries the mark. */
export interface ListedRecord {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly content: string;
  readonly ttl: number;
  readonly proxied: boolean;
  readonly comment?: string | null | undefined;
  /** When it was last written, as an ISO 8601 time. */
  readonly modified_on?: string | undefined;
}

/** Ids of the records under one key: `keep` has the key's type and is overwritten, `surplus` must be deleted. */
export interface DnsRef {
  readonly keep: string | null;
  readonly surplus: readonly string[];
  /** A wildcard covers the name: these records are to be deleted. */
  readonly isCovered?: boolean;
}

/** Types that decide what a name points to. Others (MX, TXT, ...) may exist beside ours, but not beside a CNAME. */
export const POINTING: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME', 'NS']);

interface Claimed {
  readonly record: ListedRecord;
  readonly owner: Ownership;
  readonly hash: string | null;
}

/**
 * The observed objects of a zone's records in canonical form, pure. Records with our mark are ours. A foreign record at
 * a desired name makes the name foreign if it points somewhere or if we want a CNAME there, even if a record of ours is
 * beside it.
 */
export function observedRecords(
  listed: readonly ListedRecord[],
  desired: readonly Resource<RecordSpec>[],
  identity: Identity,
): Observed<DnsRef>[] {
  const wantedKeys = Map.groupBy(desired, ({ spec }) => spec.name);
  const byKey = new Map<string, Claimed[]>();
  const claim = (key: string, item: Claimed) => byKey.set(key, [...(byKey.get(key) ?? []), item]);

  for (const record of listed) {
    const { owner, hash } = readMark(identity, record.comment);
    const wanted = wantedKeys.get(record.name) ?? [];
    if (owner.kind === 'ours') claim(claimant(recordKey(record), wanted), { record, owner, hash });
    else {
      for (const { key, spec } of wanted) {
        if (POINTING.has(record.type) || spec.type === 'CNAME') claim(key, { record, owner, hash });
      }
    }
  }
  return [...byKey].map(([key, claimed]) => {
    const [first] = claimed;
    if (first === undefined) throw new Error('a key was claimed by no record');
    const others = claimed.flatMap(({ owner }) => (owner.kind === 'foreign' ? [owner] : []));
    // A record that another host made for this site may be taken over, unless one made for something else is beside it.
    const site = wantedKeys.get(first.record.name)?.find((wanted) => wanted.key === key)?.site;
    const foreign = others.find((owner) => owner.site !== site) ?? others[0];
    const ofType = claimed.filter(({ record }) => recordKey(record) === key);
    const keep = ofType.find(({ owner }) => owner.kind === 'ours') ?? ofType[0] ?? null;
    // The mark has the hash of what was applied; the record may have been edited since.
    const plain = plainHash(first.record);
    const isApplied =
      claimed.length === 1 && keep !== null && markedAs(first.record, first.hash, plain) !== 'edited';
    return {
      target: DNS.target,
      key,
      owner: foreign ?? first.owner,
      ...(isApplied
        ? { hash: plain }
        : { hash: null, found: claimed.map(({ record }) => recordSummary(record)).join(' and ') }),
      ref: {
        keep: keep?.record.id ?? null,
        surplus: claimed.filter((item) => item !== keep).map(({ record }) => record.id),
      },
    };
  });
}

/**
 * Our record of an undesired type belongs to the key of the desired type, which replaces it: a CNAME allows no A beside
 * it.
 */
function claimant(key: string, wanted: readonly Resource<RecordSpec>[]): string {
  return wanted.some((resource) => resource.key === key) ? key : (wanted[0]?.key ?? key);
}
