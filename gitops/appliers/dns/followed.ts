import { RetryableError } from '../../../base/errors.ts';
import type { Applier } from '../contract.ts';
import type { FollowedDestination } from '../followed-destination.ts';
import { planResources } from '../plan.ts';
import { DNS, type RecordSpec } from './desired.ts';
import type { DnsRef } from './observed.ts';

type DnsApplier = Applier<RecordSpec, DnsRef>;

/**
 * Sites' DNS records whose destination can change. While it isn't known, the records aren't observed, so nothing is
 * changed or deleted. `build` creates the applier of one destination.
 */
export function followedDns(
  destination: FollowedDestination,
  build: (destination: string) => DnsApplier,
): DnsApplier {
  let built: { readonly destination: string; readonly applier: DnsApplier } | null = null;
  /** `null`: the destination isn't known. */
  const applier = (): DnsApplier | null => {
    const current = destination.current();
    if (current === null) return null;
    if (built?.destination !== current) built = { destination: current, applier: build(current) };
    return built.applier;
  };
  const known = async (signal: AbortSignal): Promise<DnsApplier> => {
    await destination.check(signal);
    const current = applier();
    if (current === null) throw new Error('the check succeeded, but the destination of names isn’t known');
    return current;
  };
  return {
    ...DNS,
    desired: (manifest) => applier()?.desired(manifest) ?? [],
    edition: () => destination.current() ?? '',
    plan: (desired, observed) => planResources(desired, observed, DNS),
    async observe(desired, signal, scope) {
      const before = destination.current();
      const current = await known(signal);
      // The desired records were derived from the earlier destination; the next pass derives them again.
      if (destination.current() !== before)
        throw new RetryableError('the address of the Service has just changed; the next pass uses it');
      return await current.observe(desired, signal, scope);
    },
    apply: async (change, signal, progress) => await (await known(signal)).apply(change, signal, progress),
    events: (signal) => destination.changes(signal),
    quota: () => applier()?.quota?.() ?? null,
  };
}
