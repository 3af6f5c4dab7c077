import { contentHash, type Identity, type Ownership, readMark } from '../../base/ownership.ts';
import type { Observed, Resource } from '../contract.ts';
import { canonicalRecord, DNS, type RecordSpec, recordKey } from './desired.ts';

/** A record as a provider lists it. `comment` carries the mark. */
export interface ListedRecord {
  readonly id: string;
  readonly name: string;
  readonly type: string;
  readonly content: string;
  readonly ttl: number;
  readonly proxied: boolean;
  readonly comment?: string | null | undefined;
}

/** Ids of the records behind one key: the one of the key's own type to overwrite, and those that are in its way. */
export interface DnsRef {
  readonly keep: string | null;
  readonly surplus: readonly string[];
}

/** Types that decide where a name leads; mail, text and the rest may stand beside ours, but not beside an alias. */
export const LEADING: ReadonlySet<string> = new Set(['A', 'AAAA', 'CNAME', 'NS']);

interface Claimed {
  readonly record: ListedRecord;
  readonly owner: Ownership;
  readonly hash: string | null;
}

/**
 * What a zone's records mean to us, pure. Ours are those that carry our mark; somebody else's count only where they
 * lead a name that we want somewhere, and then the name is theirs, even if ours stand beside them.
 */
export function observedRecords(
  listed: readonly ListedRecord[],
  desired: readonly Resource<RecordSpec>[],
  identity: Identity,
): Observed<DnsRef>[] {
  const wantedKeys = Map.groupBy(desired, ({ spec }) => spec.name);
  const byKey = new Map<string, Claimed[]>();
  const claim = (key: string, item: Claimed) => byKey.set(key, [...(byKey.get(key) ?? []), item]);

  for (const raw of listed) {
    const record = canonicalRecord(raw);
    const { owner, hash } = readMark(identity, record.comment);
    const wanted = wantedKeys.get(record.name) ?? [];
    if (owner.kind === 'ours') claim(claimant(recordKey(record), wanted), { record, owner, hash });
    else {
      for (const { key, spec } of wanted) {
        if (LEADING.has(record.type) || spec.type === 'CNAME') claim(key, { record, owner, hash });
      }
    }
  }
  return [...byKey].map(([key, claimed]) => {
    const [first] = claimed;
    if (first === undefined) throw new Error('a key was claimed by no record');
    const others = claimed.flatMap(({ owner }) => (owner.kind === 'foreign' ? [owner] : []));
    // A stranger's comes before one that another host made for this very site: only that one alone may be taken over.
    const site = wantedKeys.get(first.record.name)?.find((wanted) => wanted.key === key)?.site;
    const foreign = others.find((owner) => owner.site !== site) ?? others[0];
    const ofType = claimed.filter(({ record }) => recordKey(record) === key);
    const keep = ofType.find(({ owner }) => owner.kind === 'ours') ?? ofType[0] ?? null;
    return {
      target: DNS.target,
      key,
      owner: foreign ?? first.owner,
      hash: claimed.length === 1 && keep !== null && unchanged(first) ? first.hash : null,
      ref: {
        keep: keep?.record.id ?? null,
        surplus: claimed.filter((item) => item !== keep).map(({ record }) => record.id),
      },
    };
  });
}

/** Ours of a type that is no longer wanted is replaced by what now is, at once: an alias bears no address beside it. */
function claimant(key: string, wanted: readonly Resource<RecordSpec>[]): string {
  return wanted.some((resource) => resource.key === key) ? key : (wanted[0]?.key ?? key);
}

/** The mark says what was applied; a person may have edited the record since. */
function unchanged({ record: { name, type, content, ttl, proxied }, hash }: Claimed): boolean {
  return hash !== null && contentHash({ name, type, content, ttl, proxied }).startsWith(hash);
}
