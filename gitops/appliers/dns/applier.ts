import { QuotaReachedError, RetryableError, TerminalError } from '../../../base/errors.ts';
import { formatMark, type Identity } from '../../../base/ownership.ts';
import { quotaRemedy } from '../../../base/quota-remedy.ts';
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
import { ownWildcards, surplusWildcards, unusedWildcards } from './host-wildcards.ts';
import { keptName, withKeptMarks } from './kept-names.ts';
import { keptHash } from './mark-hash.ts';
import { type DnsRef, observedRecords } from './observed.ts';
import type { DnsProvider, RecordChange } from './provider.ts';
import {
  coveredName,
  coversNewSites,
  isWildcard,
  modeInZone,
  type RecordMode,
  type ZoneNames,
  zoneNames,
} from './wildcard.ts';
import { wildcardWriter } from './wildcard-writer.ts';

interface DnsApplierOptions extends DnsDestinations {
  readonly provider: DnsProvider;
  readonly identity: Identity;
  /** The zone's name; nothing outside it is written. */
  readonly zone: string;
  /** Default: `site`. `auto`: the zone decides, see wildcard.ts. */
  readonly mode?: RecordMode | 'auto';
  /**
   * How many records the zone may have; `null`: unknown. Never rejects. Unset: no limit (the operator's own primary).
   */
  readonly quota?: ((signal: AbortSignal) => Promise<number | null>) | undefined;
}

/** Records that a site needs: for edge, origin and preview, or only for edge if a wildcard covers the others. */
export const RECORDS_PER_SITE = { site: 3, wildcard: 1 } as const;

/** DNS records of the sites in one zone. */
export function dnsApplier(options: DnsApplierOptions): Applier<RecordSpec, DnsRef> {
  const { provider, identity, zone, hostAddress, mode: setting = 'site' } = options;
  let quota: QuotaFigures | null = null;
  /** The mode that the last observation found. */
  let mode: RecordMode | null = setting === 'auto' ? null : setting;
  let seen: ZoneNames | null = null;
  /** True if a wildcard would replace records of this host's sites. */
  let isReplaceable = false;
  const wildcard = wildcardWriter({ list: (...asked) => provider.list(...asked), change, identity });

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
    const [found, limit] = await Promise.all([
      provider.list(signal, names),
      scope === undefined ? options.quota?.(signal) : undefined,
    ]);
    const listed = found.map(canonicalRecord);
    const inZone = zoneNames(listed, zone, identity);
    if (setting === 'auto' && names === undefined) mode = modeInZone(inZone);
    const covered = new Map(
      desired.flatMap((resource) => {
        const one = mode === 'wildcard' ? coveredName(resource, inZone, hostAddress) : null;
        return one === null ? [] : [[resource.key, one] as const];
      }),
    );
    // Only wildcards need it when changes are applied: of many sites' own records it takes tens of megabytes.
    seen = mode === 'wildcard' ? inZone : null;
    if (scope === undefined) {
      isReplaceable =
        mode === 'site' && desired.some((one) => coveredName(one, inZone, hostAddress) !== null);
    }
    wildcard.forget();
    const wildcards = new Set(listed.filter((record) => isWildcard(record, identity)));
    if (names === undefined && (limit !== undefined || quota !== null)) {
      const isCovered = mode === 'wildcard' && coversNewSites(inZone, hostAddress);
      const perSite = RECORDS_PER_SITE[isCovered ? 'wildcard' : 'site'];
      const known = limit === undefined ? (quota?.limit ?? null) : limit;
      const unused = wildcards.size === 0 ? [] : unusedWildcards(inZone);
      quota = {
        ...{ name: 'dns_records', mode: mode ?? 'site', used: listed.length, limit: known, perSite },
        ...(unused.length === 0 ? {} : { unused }),
      };
    }
    const others = observedRecords(
      listed.filter((record) => !wildcards.has(record)),
      desired,
      identity,
    ).filter(({ key }) => !covered.has(key));
    const own = mode === 'wildcard' ? withKeptMarks(others, desired, inZone, hostAddress) : others;
    const surplus =
      scope === undefined && wildcards.size > 0 ? surplusWildcards(desired, inZone, hostAddress) : [];
    return [...own, ...surplus, ...[...covered.values()].flatMap(({ observed }) => observed ?? [])];
  }

  async function change(one: RecordChange, signal: AbortSignal): Promise<void> {
    await provider.change(one, signal).catch((error: unknown) => {
      if (!(error instanceof QuotaReachedError)) throw error;
      throw error.withRemedy(quotaRemedy('dns_records', isReplaceable ? 'site' : 'wildcard'));
    });
    const { write, keep, surplus } = one;
    const added = (write === undefined ? 0 : 1) - (keep === null ? 0 : 1) - surplus.length;
    if (quota !== null) quota = { ...quota, used: quota.used + added };
  }

  async function apply({ site, desired, observed }: Change<RecordSpec, DnsRef>, signal: AbortSignal) {
    const { isCovered = false, ...ref } = observed?.ref ?? { keep: null, surplus: [] };
    if (desired === undefined) return await change(ref, signal);
    // Another pass may have observed the zone since this change was planned.
    const covered = mode === 'wildcard' && seen !== null ? coveredName(desired, seen, hostAddress) : null;
    if (isCovered) {
      if (covered?.missing !== undefined || covered === null) {
        throw new RetryableError(`no wildcard covers ${desired.spec.name} any more`);
      }
      return await change(ref, signal);
    }
    const { spec: record, hash } = desired;
    // A provider would append the zone to such a name and report success.
    if (record.name !== zone && !record.name.endsWith(`.${zone}`)) {
      throw new TerminalError(`${record.name} lies outside the zone ${zone}`);
    }
    const { missing } = covered ?? {};
    if (missing !== undefined) {
      const write = { record, comment: formatMark(identity, site, hash) };
      const spare = ref.keep === null ? null : { id: ref.keep, write };
      return await wildcard.write(missing, spare, signal);
    }
    if (covered !== null && ref.keep === null) return;
    const isKept = mode === 'wildcard' && seen !== null && keptName(desired, seen, hostAddress) !== 'no';
    const write = { record, comment: formatMark(identity, site, isKept ? keptHash(record) : hash) };
    await change({ ...ref, write }, signal);
  }

  return {
    ...DNS,
    desired: (manifest) => desiredRecords(manifest, options),
    observe,
    ofHost: async (signal) => ownWildcards((await provider.list(signal)).map(canonicalRecord), identity),
    plan: (desired, observed) => planResources(desired, observed, DNS),
    apply,
    quota: () => quota,
  };
}
