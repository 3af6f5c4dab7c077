import { Peer } from './peer.ts';

/** A pod's address with the port on which its container listens. */
export interface PodEndpoint {
  /** IPv4. */
  readonly address: string;
  readonly port: number;
  /** `ending`: it was ready and ends on purpose (its slice says `terminating`). */
  readonly state: 'ready' | 'ending';
}

/** The last known peers, as they are saved: addresses with ports, by service. */
export type SavedPeers = Readonly<Record<string, readonly { address: string; port: number }[]>>;

/** If half of all ready endpoints vanish within this time, they stay as long as they accept connections. */
const MASS_WINDOW_MS = 10_000;
/**
 * A kept peer that has accepted no connection for this time is forgotten. A busy machine or network
 * delays connections for a shorter time.
 */
const LOST_MS = 10_000;
/** The most peers in one answer, so that it fits into the 512 bytes of an answer over UDP. */
const MOST_ANSWERED = 16;
/** nginx tries each address of an answer once, so an answer with only one or two peers repeats their addresses. */
const TRIES = 3;

/**
 * Decides to which pods requests are sent; has no clock and no sockets of its own. A listed endpoint gets requests
 * until two connects in a row have failed. If no endpoint of a service accepts connections, all listed ones get
 * requests: a failed connection is no worse than an answer without any pod.
 *
 * Endpoints that vanish may still serve, because a control plane that is cut off from its nodes empties every service
 * although the pods still run. So when a service loses all endpoints, or half of all endpoints vanish within ten
 * seconds, the last known ones stay until they have accepted no connection for ten seconds, or another service lists
 * their address. If a single service has lost its endpoints, they stay until it has an endpoint again. If half of all
 * endpoints have vanished, those of a service stay until it has as many as before, because the control plane may reach
 * its nodes again one by one. A pod that ends on purpose doesn't count as vanished; if it is one of the last known
 * endpoints, it stays only as long as it accepts connections. After a restart, the peers from before the restart count
 * as listed until the API server has listed the service.
 */
export class Peers {
  /** Services by `<namespace>/<name>`, peers by `<address>:<port>`. */
  readonly #services = new Map<string, Map<string, Peer>>();
  /** When endpoints vanished without ending on purpose: a time for each, within the last ten seconds. */
  #vanished: number[] = [];
  /** How many endpoints each service has; if some have vanished that may come back: how many it had before. */
  readonly #had = new Map<string, number>();

  /** What the API server lists of a service now. Times are milliseconds. */
  listed(service: string, endpoints: readonly PodEndpoint[], now: number): void {
    const peers = this.#services.get(service) ?? new Map<string, Peer>();
    this.#services.set(service, peers);
    const ready = new Map(
      endpoints.flatMap((one) => (one.state === 'ready' ? [[keyOf(one), one] as const] : [])),
    );
    this.#release(service, ready);
    const had = this.#countBefore(service);
    const ending = new Set(endpoints.flatMap((one) => (one.state === 'ending' ? [keyOf(one)] : [])));
    for (const [key, { address, port }] of ready) {
      const peer = peers.get(key);
      if (peer === undefined) peers.set(key, new Peer(address, port));
      else peer.list();
    }
    for (const [key, peer] of peers) {
      if (ready.has(key) || !isListed(peer)) continue;
      peer.unlist(now, ending.has(key));
      if (!peer.left) this.#vanished.push(now);
    }
    const isWhole = ready.size >= had;
    this.#had.set(service, isWhole ? ready.size : had);
    for (const peer of peers.values())
      if (peer.kept && ready.size > 0 && (isWhole || !peer.isOfMass)) peer.drop();
    this.#keepLastKnown(now);
  }

  /** Forgets all other services. */
  retain(services: ReadonlySet<string>): void {
    for (const service of [...this.#services.keys()].filter((one) => !services.has(one))) {
      this.#services.delete(service);
      this.#had.delete(service);
    }
  }

  /** Records the outcome of a connect to a peer. */
  answered(service: string, endpoint: { address: string; port: number }, accepted: boolean): void {
    const peers = this.#services.get(service);
    const peer = peers?.get(keyOf(endpoint));
    if (peers === undefined || peer === undefined) return;
    peer.count(accepted);
    if (peer.left && peer.isOut) peers.delete(keyOf(endpoint));
  }

  /** The addresses to which a service's requests are sent, for one answer of the resolver; empty: there is none. */
  addresses(service: string, port: number, random: () => number = Math.random): string[] {
    const inUse = this.#inUse(service).filter((peer) => peer.port === port);
    const found = inUse.map(({ address }) => address);
    if (found.length === 0) return [];
    const start = Math.floor(random() * found.length);
    const rotated = [...found.slice(start), ...found.slice(0, start)].slice(0, MOST_ANSWERED);
    const times = Math.ceil(TRIES / rotated.length);
    return Array.from({ length: times }, () => rotated).flat();
  }

  /** True if a service has a pod that gets requests, doesn't end on purpose, and is listed or accepts connections. */
  hasLasting(service: string): boolean {
    return this.#inUse(service).some(
      ({ left, unlistedAt, accepts }) => !left && (unlistedAt === null || accepts),
    );
  }

  /**
   * What the connects to a service's endpoints have shown: one that gets requests accepts connections, all listed ones
   * have failed twice, or it isn't known yet. `null`: it has no listed endpoints.
   */
  proof(service: string): 'accepts' | 'fails' | 'unknown' | null {
    const candidates = this.#candidates(service);
    const listed = candidates.filter(({ unlistedAt }) => unlistedAt === null);
    if (listed.length === 0) return null;
    if (candidates.some(({ accepts }) => accepts)) return 'accepts';
    return listed.every(({ isOut }) => isOut) ? 'fails' : 'unknown';
  }

  /** The peers to connect to, to find out whether they accept connections. Forgets those that are no longer needed. */
  toConnect(now: number): { service: string; address: string; port: number }[] {
    this.#forget(now);
    return [...this.#services].flatMap(([service, peers]) =>
      [...peers.values()].map(({ address, port }) => ({ service, address, port })),
    );
  }

  /** The peers that get requests, for `restore` after a restart. */
  save(): SavedPeers {
    return Object.fromEntries(
      [...this.#services.keys()]
        .sort()
        .map((service) => [service, this.#inUse(service).map(({ address, port }) => ({ address, port }))]),
    );
  }

  /** Takes the last known peers of an earlier process: they stay until the API server has listed the service. */
  restore(saved: SavedPeers, now: number): void {
    for (const [service, endpoints] of Object.entries(saved)) {
      const peers = endpoints.map(({ address, port }) => {
        const peer = new Peer(address, port);
        peer.restore(now);
        return [keyOf(peer), peer] as const;
      });
      this.#services.set(service, new Map(peers));
    }
  }

  /** The peers that are listed, and the last known ones that stay. */
  #candidates(service: string): Peer[] {
    const peers = [...(this.#services.get(service)?.values() ?? [])];
    return peers.filter(({ unlistedAt, kept }) => unlistedAt === null || kept);
  }

  #inUse(service: string): Peer[] {
    const candidates = this.#candidates(service);
    const accepting = candidates.filter(({ isOut }) => !isOut);
    return accepting.length > 0 ? accepting : candidates;
  }

  /** How many endpoints a service has. If some have vanished that may come back: how many it had before. */
  #countBefore(service: string): number {
    const peers = [...(this.#services.get(service)?.values() ?? [])];
    const hasLost = peers.some((peer) => !isListed(peer) && !peer.left);
    return hasLost ? (this.#had.get(service) ?? 0) : peers.filter(isListed).length;
  }

  #keepLastKnown(now: number): void {
    this.#vanished = this.#vanished.filter((at) => now - at < MASS_WINDOW_MS);
    const all = [...this.#services.values()].flatMap((peers) => [...peers.values()]);
    const listed = all.filter(isListed).length;
    const isMass = this.#vanished.length > 0 && this.#vanished.length >= listed;
    for (const [service, peers] of this.#services) {
      const unlisted = [...peers.values()].filter((peer) => !isListed(peer));
      const count = peers.size - unlisted.length;
      const isWhole = count >= (this.#had.get(service) ?? 0);
      for (const peer of unlisted) {
        const isOfMass = isMass && !isWhole && !peer.left && now - (peer.unlistedAt ?? now) < MASS_WINDOW_MS;
        if (count === 0 || isOfMass) peer.keep(isOfMass);
      }
    }
  }

  /** Forgets the unlisted pods of other services whose address this service lists now: the address is another pod's. */
  #release(service: string, listed: ReadonlyMap<string, PodEndpoint>): void {
    const known = this.#services.get(service);
    const fresh = [...listed].flatMap(([key, { address }]) => (known?.has(key) ? [] : [address]));
    if (fresh.length === 0) return;
    const addresses = new Set(fresh);
    for (const [other, peers] of this.#services) {
      if (other === service) continue;
      for (const [key, { address, unlistedAt }] of peers) {
        if (unlistedAt !== null && addresses.has(address)) peers.delete(key);
      }
    }
  }

  #forget(now: number): void {
    for (const peers of this.#services.values()) {
      for (const [key, peer] of peers) {
        if (peer.unlistedAt === null) continue;
        const isLost = now - peer.outSince(now) >= LOST_MS;
        if (isLost || (!peer.kept && now - peer.unlistedAt >= MASS_WINDOW_MS)) peers.delete(key);
      }
    }
  }
}

function keyOf({ address, port }: { address: string; port: number }): string {
  return `${address}:${port}`;
}

function isListed({ unlistedAt, isRestored }: Peer): boolean {
  return unlistedAt === null || isRestored;
}
