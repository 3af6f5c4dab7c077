import { QuotaReachedError, TerminalError } from '../../base/errors.ts';
import { contentHash, formatMark, type Identity } from '../../base/ownership.ts';
import type { QuotaFigures } from '../../report/quotas.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../contract.ts';
import { planResources } from '../plan.ts';
import {
  canonicalRecord,
  DNS,
  type DnsDestinations,
  desiredRecords,
  nameOfKey,
  type RecordSpec,
} from './desired.ts';
import { type DnsRef, type ListedRecord, observedRecords } from './observed.ts';
import {
  ALL_SITES,
  coveredName,
  isWildcard,
  type MissingWildcard,
  modeInZone,
  type RecordMode,
  type ZoneNames,
  zoneNames,
} from './wildcard.ts';

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
  /** Default: `site`. `auto`: the zone decides, see wildcard.ts. */
  readonly mode?: RecordMode | 'auto';
  /** How many records the zone may have; `null`: unknown. Unset: a primary of one's own, which has no limit. */
  readonly quota?: ((signal: AbortSignal) => Promise<number | null>) | undefined;
}

/** Edge, origin and preview; the edge's alone where a wildcard covers the others. */
const RECORDS_PER_SITE = { site: 3, wildcard: 1 } as const;

/** DNS records of the sites in one zone. */
export function dnsApplier(options: DnsApplierOptions): Applier<RecordSpec, DnsRef> {
  const { provider, identity, zone, hostAddress, mode: setting = 'site' } = options;
  let quota: QuotaFigures | null = null;
  /** As of the last observation. */
  let mode: RecordMode | null = setting === 'auto' ? null : setting;
  let seen: ZoneNames | null = null;
  const writing = new Map<string, Promise<void>>();

  async function observe(
    desired: readonly Resource<RecordSpec>[],
    signal: AbortSignal,
    scope?: Scope,
  ): Promise<Observed<DnsRef>[]> {
    // Only a whole zone shows which names a wildcard covers.
    const names =
      scope && mode === 'site'
        ? new Set([...desired.map(({ spec }) => spec.name), ...[...scope.keys].map(nameOfKey)])
        : undefined;
    const [listed, limit] = await Promise.all([
      provider.list(signal, names),
      scope === undefined ? options.quota?.(signal) : undefined,
    ]);
    const inZone = zoneNames(listed, zone, identity);
    if (setting === 'auto' && names === undefined) mode = modeInZone(inZone);
    const covered = new Map(
      desired.flatMap((resource) => {
        const one = mode === 'wildcard' ? coveredName(resource, inZone, hostAddress) : null;
        return one === null ? [] : [[resource.key, one] as const];
      }),
    );
    seen = inZone;
    writing.clear();
    const wildcards = listed.map(canonicalRecord).filter((record) => isWildcard(record, identity));
    if (limit !== undefined) {
      const hasOwn = mode === 'wildcard' && wildcards.some(({ content }) => content === hostAddress);
      const perSite = RECORDS_PER_SITE[hasOwn ? 'wildcard' : 'site'];
      quota = { name: 'dns_records', used: listed.length, limit, perSite };
    }
    const ids = new Set(wildcards.map(({ id }) => id));
    const others = observedRecords(
      listed.filter(({ id }) => !ids.has(id)),
      desired,
      identity,
    ).filter(({ key }) => !covered.has(key));
    return [...others, ...[...covered.values()].flatMap(({ observed }) => observed ?? [])];
  }

  async function change(one: RecordChange, signal: AbortSignal): Promise<void> {
    await provider.change(one, signal);
    const { write, keep, surplus } = one;
    const added = (write === undefined ? 0 : 1) - (keep === null ? 0 : 1) - surplus.length;
    if (quota !== null) quota = { ...quota, used: quota.used + added };
  }

  /** Writes a wildcard once for all names that need it. In a full zone, a name's own record (`spare`) becomes it. */
  function writeWildcard({ record, keep }: MissingWildcard, spare: string | null, signal: AbortSignal) {
    const write = { record, comment: formatMark(identity, ALL_SITES, contentHash(record)) };
    const started = writing.get(record.name);
    if (started !== undefined) return started;
    const running = change({ write, keep, surplus: [] }, signal).catch((error: unknown) => {
      if (!(error instanceof QuotaReachedError) || spare === null) throw error;
      return change({ write, keep: spare, surplus: [] }, signal);
    });
    writing.set(record.name, running);
    running.catch(() => writing.delete(record.name));
    return running;
  }

  async function apply({ site, desired, observed }: Change<RecordSpec, DnsRef>, signal: AbortSignal) {
    const { isCovered = false, ...ref } = observed?.ref ?? { keep: null, surplus: [] };
    if (desired === undefined || isCovered) return await change(ref, signal);
    const { spec: record, hash } = desired;
    // A provider would append the zone to such a name and report success.
    if (record.name !== zone && !record.name.endsWith(`.${zone}`)) {
      throw new TerminalError(`${record.name} lies outside the zone ${zone}`);
    }
    const wildcard =
      mode === 'wildcard' && seen !== null ? coveredName(desired, seen, hostAddress)?.missing : undefined;
    if (wildcard !== undefined) return await writeWildcard(wildcard, ref.keep, signal);
    const write = { record, comment: formatMark(identity, site, hash) };
    await change({ ...ref, write }, signal);
  }

  return {
    ...DNS,
    desired: (manifest) => desiredRecords(manifest, options),
    observe,
    plan: (desired, observed) => planResources(desired, observed, DNS),
    apply,
    quota: () => quota,
  };
}
