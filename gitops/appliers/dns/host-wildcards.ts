import { type Identity, readMark } from '../../base/ownership.ts';
import type { Observed, Resource } from '../contract.ts';
import { DNS, type RecordSpec, recordKey } from './desired.ts';
import { plainHash } from './mark-hash.ts';
import { type DnsRef, type ListedRecord, POINTING } from './observed.ts';
import { isCoverable, isWildcard, ownRecords, parentOf, type ZoneNames } from './wildcard.ts';

/**
 * This host's wildcard among the records of one name, if another host of the instance has one that precedes it, pure:
 * a name with both leads to either host. The one that was written first precedes, so a host that writes the second
 * finds the other and deletes its own. Equal times are decided by the marks, which name the hosts.
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
 * The lost wildcards as things to delete, pure: each once all desired names that it would cover have records of their
 * own. `desired`: those of all sites of this host.
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
    const ref: DnsRef = { keep: lost.id, surplus: [] };
    return [{ target: DNS.target, key: recordKey(lost), owner, hash: plainHash(lost), ref }];
  });
}

/**
 * Wildcards of hosts without any other record in the zone, for a person, pure. Each site has a record of its own for
 * its edge hostname, so these hosts have no site there: the wildcard leads made-up names, and names of other hosts that
 * lost their record, to a host that may not exist any more.
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
