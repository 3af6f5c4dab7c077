import type { KubernetesObject } from '../client/kinds.ts';
import { LastChanges } from '../delivery/last-changes.ts';
import { readReport } from '../delivery/report.ts';

/** When gateways had the last requests for services on demand, by this gateway's own clock alone. */
export class ReportedUses {
  readonly #leases = new LastChanges();

  /**
   * By service (`<namespace>/<name>`): the time of the last use that a Lease reports, in milliseconds like `now`. The
   * reported age is counted from when this gateway last saw the Lease change, so no use counts as earlier than it was.
   */
  latest(leases: Iterable<KubernetesObject>, now: number): ReadonlyMap<string, number> {
    const all = [...leases];
    const changes = this.#leases.note(all, now);
    const found = new Map<string, number>();
    for (const lease of all) {
      const at = changes.get(lease.metadata.name) ?? now;
      for (const [service, seconds] of Object.entries(readReport(lease)?.unused ?? {}))
        found.set(service, Math.max(found.get(service) ?? -Infinity, at - 1_000 * seconds));
    }
    return found;
  }
}
