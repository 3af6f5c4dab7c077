import type { ProvisionerReport } from '../clients/provisioner-client.ts';

/**
 * What the provisioner last reported of the room in its zone, and whether it orders certificates. Requests are judged by
 * it, because an answer must not wait for a provisioner that hangs. Before the first report nothing is known, and nothing
 * is refused: the provisioner's own attempt shows a quota that is reached.
 */
export class HostRoom {
  #full: string | null = null;
  #hasAuthority: boolean | null = null;
  #waiting: ReadonlyMap<string, string> = new Map();

  record({ full, hasAuthority, sites }: ProvisionerReport): void {
    this.#full = full;
    this.#hasAuthority = hasAuthority;
    this.#waiting = new Map(
      sites.filter(({ reason }) => reason === 'QuotaReached').map(({ site, message }) => [site, message]),
    );
  }

  /** Why the zone has no room for another site; `null`: there is room, or that is unknown. */
  get full(): string | null {
    return this.#full;
  }

  /** Whether the host has an authority to order certificates from; `null`: it has reported nothing yet. */
  get hasAuthority(): boolean | null {
    return this.#hasAuthority;
  }

  /** Why the site itself waits for room; `null`: it doesn't, or that is unknown. */
  waiting(site: string): string | null {
    return this.#waiting.get(site) ?? null;
  }
}
