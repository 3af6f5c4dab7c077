/** After this many failed connects in a row, a peer gets requests only if its service has no peer with fewer. */
const MISSES_TO_BE_OUT = 2;

/** One pod of a service, with all that decides whether it gets requests. */
export class Peer {
  readonly address: string;
  readonly port: number;
  #misses = 0;
  #accepts = false;
  #unlistedAt: number | null = null;
  #left = false;
  #kept = false;
  #isOfMass = false;
  #isRestored = false;
  #outSince: number | null = null;

  constructor(address: string, port: number) {
    this.address = address;
    this.port = port;
  }

  /** When the API server stopped listing it as ready, in milliseconds; `null`: it is listed. */
  get unlistedAt(): number | null {
    return this.#unlistedAt;
  }

  /** True if the pod isn't listed as ready because it ends on purpose. */
  get left(): boolean {
    return this.#left;
  }

  /** True if the peer stays although it isn't listed. */
  get kept(): boolean {
    return this.#kept;
  }

  /** True if the last connect succeeded. */
  get accepts(): boolean {
    return this.#accepts;
  }

  /** True if the peer stays because half of all endpoints have vanished together with it. */
  get isOfMass(): boolean {
    return this.#isOfMass;
  }

  /** True if the peer is known from an earlier process, and its service was not listed since. */
  get isRestored(): boolean {
    return this.#isRestored;
  }

  get isOut(): boolean {
    return this.#misses >= MISSES_TO_BE_OUT;
  }

  /** When this was first called while the peer was out, in milliseconds; `now` if it isn't out. */
  outSince(now: number): number {
    if (!this.isOut) return now;
    this.#outSince ??= now;
    return this.#outSince;
  }

  list(): void {
    this.#outSince = null;
    this.#unlistedAt = null;
    this.#left = false;
    this.drop();
  }

  unlist(now: number, left: boolean): void {
    this.#unlistedAt = now;
    this.#left = left;
    this.drop();
  }

  restore(now: number): void {
    this.unlist(now, false);
    this.keep(false);
    this.#isRestored = true;
  }

  keep(isOfMass: boolean): void {
    this.#kept = true;
    this.#isOfMass ||= isOfMass;
  }

  /** The opposite of `keep`. */
  drop(): void {
    this.#kept = false;
    this.#isOfMass = false;
    this.#isRestored = false;
  }

  /** Records the outcome of a connect. */
  count(accepted: boolean): void {
    this.#accepts = accepted;
    this.#misses = accepted ? 0 : this.#misses + 1;
    if (accepted) this.#outSince = null;
  }
}
