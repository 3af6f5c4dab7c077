/** A behaviour that a stand-in must have in common with the real thing. */
export interface Behaviour<Target> {
  /** A sentence about the target, such as `answers health checks by GET only`. */
  readonly name: string;
  /** Where the behaviour was read: a heading of `docs/facts.md`. */
  readonly source: string;
  /** Rejects where the target differs, with what it did instead. */
  readonly check: (target: Target) => Promise<void>;
}
