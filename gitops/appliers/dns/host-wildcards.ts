import { type Identity, readMark } from '../../../base/ownership.ts';
import type { Observed, Resource } from '../contract.ts';
import { DNS, type RecordSpec, recordKey } from './desired.ts';
import { plainHash } from './mark-hash.ts';
import { type DnsRef, type ListedRecord, POINTING } from './observed.ts';
import { isCoverable, isWildcard, ownRecords, parentOf, type ZoneNames } from './wildcard.ts';

/**
 * Finds this host's wildcard among the records of one name, if a wildcard of another host of the instance precedes it;
 * a pure function. With both, covered names would lead to either host. The wildcard that was written first precedes, so
 * the host that writes the second one finds the first and deletes its own. If the times are equal, the order of the
 * marks decides, because they name the hosts.
 */
export function lostWildcard(records: readonly ListedRecord[], identity: Identity): ListedRecord | null {
  const wildcards = records.filter((record) => POINTING.has(record.type) && isWildcard(record, identity));
  const isOwn = ({ comment }: ListedRecord) => readMark(identity, comment).owner.kind === 'ours';
  const [first] = wildcards.toSorted(byPrecedence);
  return first === undefined || isOwn(first) ? null : (wildcards.find(isOwn) ?? null);
}

function byPrecedence(a: ListedRecord, b: ListedRecord): number {
  const [markA, markB] = [a.comment ?? '', b.comment ?? ''];
  return writtenAt(a) - writtenAt(b) || (markA < markB ? -1 : 1);
}

function writtenAt({ modified_on }: ListedRecord): number {
  return modified_on === undefined ? 0 : Date.parse(modified_on) || 0;
}

/**
 * The wildcards that `lostWildcard` finds, as observed objects for the plan to delete; a pure function. It returns a
 * wildcard only once all desired names that the wildcard would cover have records of their own. `desired`: the
 * resources of all sites of this host.
 */
export function surplusWildcards(
  desired: readonly Resource<RecordSpec>[],
  names: ZoneNames,
  hostAddress: string,
): Observed<DnsRef>[] {
  const { identity } = names;
  const [site] = desired.map((resource) => resource.site).sort();
  if (site === undefined) return [];
  const hasOwn = ({ name, content }: RecordSpec) =>
    ownRecords(name, names).some(({ record }) => POINTING.has(record.type) && record.content === content);
  return [...names.records].flatMap(([name, records]) => {
    const lost = name.startsWith('*.') ? lostWildcard(records, identity) : null;
    if (lost === null) return [];
    const covered = desired.filter(
      ({ spec }) => parentOf(spec.name) === parentOf(name) && isCoverable(spec, names, hostAddress),
    );
    if (!covered.every(({ spec }) => hasOwn(spec))) return [];
    const owner = { kind: 'ours', site, host: identity.host } as const;
    return [observedWildcard(lost, owner)];
  });
}

function observedWildcard(record: ListedRecord, owner: Observed['owner']): Observed<DnsRef> {
  const ref: DnsRef = { keep: record.id, surplus: [] };
  return { target: DNS.target, key: recordKey(record), owner, hash: plainHash(record), ref };
}

/** This host's wildcards, as observed objects for the plan to delete; a pure function. */
export function ownWildcards(listed: readonly ListedRecord[], identity: Identity): Observed<DnsRef>[] {
  return listed.flatMap((record) => {
    const { owner } = readMark(identity, record.comment);
    return owner.kind === 'ours' && isWildcard(record, identity) ? [observedWildcard(record, owner)] : [];
  });
}

/**
 * Wildcards of other hosts that have no other record in the zone, as text for people; a pure function. Each site has a
 * record of its own for its edge hostname, so these hosts have no site there: the wildcard leads made-up names, and
 * other hosts' names without a record, to a host that may not exist any more.
 */
export function unusedWildcards({ identity, records }: ZoneNames): string[] {
  const ofHosts = Map.groupBy([...records.values()].flat(), ({ comment }) => {
    const { owner } = readMark(identity, comment);
    return owner.kind === 'foreign' && owner.site !== undefined ? owner.by : null;
  });
  return [...ofHosts].flatMap(([host, some]) =>
    host !== null && some.every((record) => isWildcard(record, identity))
      ? some.map(({ name }) => `${name} (${host})`)
      : [],
  );
}
