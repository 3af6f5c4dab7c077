import { contentHash, type Identity, type Ownership, readMark } from '../../../base/ownership.ts';
import type { Observed, Resource } from '../contract.ts';
import { AUTOMATIC, DNS, type RecordSpec, recordSummary } from './desired.ts';
import { markedAs } from './mark-hash.ts';
import { type DnsRef, type ListedRecord, POINTING } from './observed.ts';

/** `site`: a record for each name. `wildcard`: one for all names below a parent that lead to this host. */
export type RecordMode = 'site' | 'wildcard';

/** A wildcard that must be written before it covers a name. */
export interface MissingWildcard {
  readonly record: RecordSpec;
  /** The id of this host's wildcard with another content; `null`: there is none yet. */
  readonly keep: string | null;
}

/** What a zone has, prepared for questions about single names. */
export interface ZoneNames {
  readonly zone: string;
  readonly identity: Identity;
  /** The records by name. */
  readonly records: ReadonlyMap<string, readonly ListedRecord[]>;
  /** How many records each name has at or below it: a wildcard covers only names without any (RFC 4592). */
  readonly below: ReadonlyMap<string, number>;
}

/** `listed`: in canonical form. */
export function zoneNames(listed: readonly ListedRecord[], zone: string, identity: Identity): ZoneNames {
  const below = new Map<string, number>();
  for (const { name } of listed) {
    for (let at = name; at !== ''; at = parentOf(at)) below.set(at, (below.get(at) ?? 0) + 1);
  }
  return { zone, identity, records: Map.groupBy(listed, ({ name }) => name), below };
}

export function parentOf(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 ? '' : name.slice(dot + 1);
}

/** True for a wildcard that a host of this instance wrote. */
export function isWildcard(record: ListedRecord, identity: Identity): boolean {
  return record.name.startsWith('*.') && isOfInstance(readMark(identity, record.comment).owner);
}

function isOfInstance(owner: Ownership): boolean {
  return owner.kind === 'ours' || owner.site !== undefined;
}

/**
 * The mode that `DNS_RECORD_MODE=auto` selects; a pure function. An instance with a wildcard in the zone keeps
 * wildcards; one that has only records for single names keeps those. A new instance gets a wildcard only if the zone
 * has no names of others: with a wildcard, a name of theirs could lead to this host by mistake.
 */
export function modeInZone({ zone, identity, records }: ZoneNames): RecordMode {
  const all = [...records.values()].flat();
  if (all.some((record) => isWildcard(record, identity))) return 'wildcard';
  const isOfHost = ({ type, proxied }: ListedRecord) => type === 'A' && !proxied;
  const isPointing = ({ name, type }: ListedRecord) => name !== zone && POINTING.has(type);
  const owners = (some: readonly ListedRecord[]) =>
    some.map(({ comment }) => readMark(identity, comment).owner);
  if (owners(all.filter(isOfHost)).some(isOfInstance)) return 'site';
  return owners(all.filter(isPointing)).every(isOfInstance) ? 'wildcard' : 'site';
}

type Cover =
  | { readonly state: 'covers' }
  | { readonly state: 'missing'; readonly missing: MissingWildcard }
  | { readonly state: 'none' };

/** Whether a wildcard beside the name has, or may get, the content of `spec`. */
function coverOf(spec: RecordSpec, { identity, records }: ZoneNames): Cover {
  const record = { ...spec, name: `*.${parentOf(spec.name)}` };
  const [only, ...others] = pointing(record.name, records);
  if (only === undefined) return { state: 'missing', missing: { record, keep: null } };
  const { owner } = readMark(identity, only.comment);
  if (others.length > 0 || !isOfInstance(owner)) return { state: 'none' };
  const { name, type, content, ttl, proxied } = only;
  if (contentHash({ name, type, content, ttl, proxied }) === contentHash(record)) return { state: 'covers' };
  return owner.kind === 'ours' ? { state: 'missing', missing: { record, keep: only.id } } : { state: 'none' };
}

function pointing(name: string, records: ZoneNames['records']): ListedRecord[] {
  return (records.get(name) ?? []).filter(({ type }) => POINTING.has(type));
}

/** True where a new site needs no records for origin and preview: this host has wildcards, and each can cover them. */
export function coversNewSites({ identity, records }: ZoneNames, hostAddress: string): boolean {
  const own = [...records.values()]
    .flat()
    .filter((record) => isWildcard(record, identity) && record.content === hostAddress);
  const covers = ({ name, ttl, proxied }: ListedRecord) =>
    ttl === AUTOMATIC && !proxied && pointing(name, records).length === 1;
  return own.length > 0 && own.every(covers);
}

/** What a wildcard does for a desired name. */
interface CoveredName {
  /** As the plan sees the name; `null`: nothing is there. */
  readonly observed: Observed<DnsRef> | null;
  readonly missing?: MissingWildcard;
}

/**
 * What is observed under a name that a wildcard may cover; a pure function. `null`: the name needs a record of its own,
 * because the wildcard has another content, or because something of others is at or below the name, or was when our
 * record was written (`keptName`). Otherwise our record is to be deleted, once the wildcard was observed. So is a
 * record that another host made for the site; if the wildcard doesn't exist yet, this host takes that record over
 * instead.
 */
export function coveredName(
  { site, key, hash, spec }: Resource<RecordSpec>,
  names: ZoneNames,
  hostAddress: string,
): CoveredName | null {
  if (!isCoverable(spec, names, hostAddress)) return null;
  const cover = coverOf(spec, names);
  if (cover.state === 'none') return null;
  const own = ownRecords(spec.name, names);
  const taken = takenRecords(site, spec.name, names);
  const found = [...own, ...taken].map(({ record }) => record);
  if ((names.below.get(spec.name) ?? 0) > found.length || own.some(({ state }) => state !== 'plain'))
    return null;
  if (taken.length > 0 && cover.state !== 'covers') return null;
  const { target } = DNS;
  const owner: Ownership = taken[0]?.owner ?? { kind: 'ours', site, host: names.identity.host };
  const missing = cover.state === 'missing' ? { missing: cover.missing } : {};
  const [keep, ...surplus] = found.map(({ id }) => id);
  if (keep === undefined) {
    const ref = { keep: null, surplus: [] };
    return { observed: cover.state === 'covers' ? { target, key, owner, hash, ref } : null, ...missing };
  }
  const summary = found.map(recordSummary).join(' and ');
  const ref: DnsRef = { keep, surplus, isCovered: cover.state === 'covers' };
  return { observed: { target, key, owner, hash: null, outdated: true, found: summary, ref }, ...missing };
}

export function isCoverable(spec: RecordSpec, { zone }: ZoneNames, hostAddress: string): boolean {
  return spec.content === hostAddress && !spec.proxied && spec.name.endsWith(`.${zone}`);
}

export function ownRecords(name: string, { identity, records }: ZoneNames) {
  return (records.get(name) ?? []).flatMap((record) => {
    const { owner, hash } = readMark(identity, record.comment);
    return owner.kind === 'ours' ? [{ record, state: markedAs(record, hash) }] : [];
  });
}

/**
 * Records that another host of the instance made for the site. This host takes them over: git has moved the site here.
 */
export function takenRecords(site: string, name: string, { identity, records }: ZoneNames) {
  return (records.get(name) ?? []).flatMap((record) => {
    const { owner } = readMark(identity, record.comment);
    return owner.kind === 'foreign' && owner.site === site ? [{ record, owner }] : [];
  });
}
