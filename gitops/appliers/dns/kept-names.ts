import type { Observed, Resource } from '../contract.ts';
import type { RecordSpec } from './desired.ts';
import type { DnsRef } from './observed.ts';
import { isCoverable, ownRecords, takenRecords, type ZoneNames } from './wildcard.ts';

/**
 * Whether a name keeps a record of its own although a wildcard could cover the name; a pure function. It keeps one if a
 * record of others is at or below the name, or was there when the own record was written. Such a record (an authority's
 * challenge, for example) may come back at any time, and the wildcard would then no longer cover the name. `lacking`:
 * the own record exists, but its mark doesn't say yet that it is kept.
 */
export function keptName(
  { site, spec }: Resource<RecordSpec>,
  names: ZoneNames,
  hostAddress: string,
): 'no' | 'lacking' | 'yes' {
  if (!isCoverable(spec, names, hostAddress)) return 'no';
  const own = ownRecords(spec.name, names);
  const taken = takenRecords(site, spec.name, names);
  if (own.some(({ state }) => state !== 'plain')) return 'yes';
  if ((names.below.get(spec.name) ?? 0) === own.length + taken.length) return 'no';
  return own.length === 0 ? 'yes' : 'lacking';
}

/**
 * Returns the observed records; a pure function. A record counts as outdated if its mark must be written anew to say
 * that the record is kept.
 */
export function withKeptMarks(
  observed: readonly Observed<DnsRef>[],
  desired: readonly Resource<RecordSpec>[],
  names: ZoneNames,
  hostAddress: string,
): Observed<DnsRef>[] {
  const lacking = new Set(
    desired.flatMap((one) => (keptName(one, names, hostAddress) === 'lacking' ? [one.key] : [])),
  );
  return observed.map((one) =>
    lacking.has(one.key) && one.owner.kind === 'ours' && one.hash !== null
      ? { ...one, hash: null, outdated: true }
      : one,
  );
}
