import type { Observed, Resource } from '../contract.ts';
import type { RecordSpec } from './desired.ts';
import type { DnsRef } from './observed.ts';
import { isCoverable, ownRecords, takenRecords, type ZoneNames } from './wildcard.ts';

/**
 * Whether a name's own record stays for good, pure: something of others is at or below the name, or was when the record
 * was written. It may come back at any time, a challenge of an authority for example, and the wildcard would then cover
 * the name no more. `lacking`: the mark of the record that exists doesn't say so yet.
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

/** Things of which some are to be written anew, so that their marks say that they stay, pure. */
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
