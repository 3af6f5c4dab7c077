/** Number of addresses per port: 127.x.0.1 to 127.x.253.254. */
const ADDRESSES = 254 * 254;

/** A container that has, or will have, one of the addresses of this port. */
export interface SlotHolder {
  readonly site: string;
  readonly port: number;
  /** Unique among all containers, and the same after a restart. */
  readonly holder: string;
}

/**
 * Assigns the loopback addresses of containers. No two containers have the same address and port, whether they exist or
 * are only desired. Existing containers win: a restarted process records their addresses by `found`. `keepOnly`
 * releases unused addresses. A process uses all other addresses before it uses one again, so an old container doesn't
 * still listen where a new one starts.
 */
export class Slots {
  readonly #subnet: string;
  readonly #ports = new Map<number, { byHolder: Map<string, string>; byAddress: Map<string, SlotHolder> }>();
  readonly #last = new Map<number, number>();
  readonly #editions = new Map<string, number>();
  /** Holders that the last call of `keepOnly` didn't name. */
  #unused = new Set<string>();

  /** `subnet`: the first two octets, for example `127.77`. */
  constructor(subnet: string) {
    this.#subnet = subnet;
  }

  /** The holder's address, assigned at the first call. Throws an `Error` if all addresses of the port are used. */
  addressOf(wanted: SlotHolder): string {
    const known = this.#port(wanted.port).byHolder.get(wanted.holder);
    if (known !== undefined) return known;
    const address = this.#nextFree(wanted.port);
    this.#assign(wanted, address);
    return address;
  }

  /** Records that a container exists at this address. A holder that had the address before gets another one. */
  found(holder: SlotHolder, address: string): void {
    const index = this.#indexOf(address);
    if (index === null) return;
    const { byHolder, byAddress } = this.#port(holder.port);
    const before = byHolder.get(holder.holder);
    if (before === address) return;
    const displaced = byAddress.get(address);
    if (displaced !== undefined) {
      byHolder.delete(displaced.holder);
      this.#outdate(displaced.site);
    }
    if (before !== undefined) {
      byAddress.delete(before);
      this.#outdate(holder.site);
    }
    this.#assign(holder, address);
    this.#last.set(holder.port, Math.max(this.#last.get(holder.port) ?? 0, index));
  }

  /**
   * Releases the addresses of holders that neither this call nor the last one names. One call isn't enough, because a
   * plan of a newer revision may be under way. What was computed from a released address is outdated. The address is
   * assigned again only after all others.
   */
  keepOnly(holders: ReadonlySet<string>): void {
    const unused = this.#unused;
    this.#unused = new Set();
    for (const { byHolder, byAddress } of this.#ports.values()) {
      for (const [address, { holder, site }] of byAddress) {
        if (holders.has(holder)) continue;
        if (!unused.has(holder)) {
          this.#unused.add(holder);
          continue;
        }
        byAddress.delete(address);
        byHolder.delete(holder);
        this.#outdate(site);
      }
    }
  }

  /** A copy for resources that are only shown: what it assigns has no effect on the original. */
  copy(): Slots {
    const copy = new Slots(this.#subnet);
    for (const [port, { byHolder, byAddress }] of this.#ports) {
      copy.#ports.set(port, { byHolder: new Map(byHolder), byAddress: new Map(byAddress) });
    }
    for (const [port, last] of this.#last) copy.#last.set(port, last);
    for (const [site, edition] of this.#editions) copy.#editions.set(site, edition);
    return copy;
  }

  /** Changes when an address of the site has changed: what was computed from it is outdated. */
  edition(site: string): number {
    return this.#editions.get(site) ?? 0;
  }

  #port(port: number) {
    let known = this.#ports.get(port);
    if (known === undefined) {
      known = { byHolder: new Map(), byAddress: new Map() };
      this.#ports.set(port, known);
    }
    return known;
  }

  #assign(holder: SlotHolder, address: string): void {
    const { byHolder, byAddress } = this.#port(holder.port);
    byHolder.set(holder.holder, address);
    byAddress.set(address, holder);
  }

  #outdate(site: string): void {
    this.#editions.set(site, this.edition(site) + 1);
  }

  #nextFree(port: number): string {
    const { byAddress } = this.#port(port);
    const last = this.#last.get(port) ?? 0;
    for (let step = 1; step <= ADDRESSES; step += 1) {
      const index = ((last + step - 1) % ADDRESSES) + 1;
      const address = this.#addressAt(index);
      if (byAddress.has(address)) continue;
      this.#last.set(port, index);
      return address;
    }
    throw new Error(`all ${ADDRESSES} loopback addresses of port ${port} are used; restart the provisioner`);
  }

  /** `index` starts at 1. The last octet is 1 to 254. */
  #addressAt(index: number): string {
    return `${this.#subnet}.${Math.floor((index - 1) / 254)}.${((index - 1) % 254) + 1}`;
  }

  /** `null` for an address outside the subnet. */
  #indexOf(address: string): number | null {
    if (!address.startsWith(`${this.#subnet}.`)) return null;
    const [third = 0, fourth = 0] = address
      .slice(this.#subnet.length + 1)
      .split('.')
      .map(Number);
    return fourth >= 1 && fourth <= 254 ? third * 254 + fourth : null;
  }
}
