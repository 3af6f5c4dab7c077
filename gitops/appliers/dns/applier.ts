import { TerminalError } from '../../base/errors.ts';
import { formatMark, type Identity } from '../../base/ownership.ts';
import type { Applier, Change } from '../contract.ts';
import { planResources } from '../plan.ts';
import { DNS, type DnsDestinations, desiredRecords, nameOfKey, type RecordSpec } from './desired.ts';
import { type DnsRef, type ListedRecord, observedRecords } from './observed.ts';

/** One change to a zone's records. `comment` is the mark to write. */
export interface RecordChange {
  readonly write?: { readonly record: RecordSpec; readonly comment: string };
  /** The id of the record to overwrite; `null`: create one. Without `write`, the record with this id is deleted. */
  readonly keep: string | null;
  /** Ids of records to delete in the same transaction. */
  readonly surplus: readonly string[];
}

/** A zone at some DNS provider. Both methods throw `RetryableError` or `TerminalError`. */
export interface DnsProvider {
  /** All records of the zone; with `names`, at least those with these names. */
  list(signal: AbortSignal, names?: ReadonlySet<string>): Promise<readonly ListedRecord[]>;
  /** Makes one change, alone or in a batch with concurrent ones. A record that is already gone counts as deleted. */
  change(change: RecordChange, signal: AbortSignal): Promise<void>;
}

interface DnsApplierOptions extends DnsDestinations {
  readonly provider: DnsProvider;
  readonly identity: Identity;
  /** The zone's name; nothing outside it is written. */
  readonly zone: string;
}

/** DNS records of the sites in one zone. */
export function dnsApplier(options: DnsApplierOptions): Applier<RecordSpec, DnsRef> {
  const { provider, identity, zone } = options;
  return {
    ...DNS,
    desired: (manifest) => desiredRecords(manifest, options),
    async observe(desired, signal, scope) {
      const names =
        scope && new Set([...desired.map(({ spec }) => spec.name), ...[...scope.keys].map(nameOfKey)]);
      return observedRecords(await provider.list(signal, names), desired, identity);
    },
    plan: (desired, observed) => planResources(desired, observed, DNS),
    async apply({ site, desired, observed }: Change<RecordSpec, DnsRef>, signal) {
      const ref = observed?.ref ?? { keep: null, surplus: [] };
      if (desired === undefined) return provider.change(ref, signal);
      const { spec: record, hash } = desired;
      // A provider would append the zone to such a name and report success.
      if (record.name !== zone && !record.name.endsWith(`.${zone}`)) {
        throw new TerminalError(`${record.name} lies outside the zone ${zone}`);
      }
      const write = { record, comment: formatMark(identity, site, hash) };
      return provider.change({ ...ref, write }, signal);
    },
  };
}
