/** The invariants of a fuzzed instance, by name: what must always hold. */
const INVARIANTS = {
  removal: 'no site is removed that git still names in any form',
  tenants: 'no name serves another tenant',
  answers: 'every part answers within 2 s, and none with a fault of its own',
  truth: 'a site that is Ready or serving answers from outside, and every site settles',
  limits: 'no burst of requests passes a limit',
  leavers: 'what was made with a credential ends with it',
  plans: 'what a dry run plans is saved, or refused if the container has changed',
} as const;

/** An invariant that doesn't hold. Any other error of a run is a fault of the fuzzer or of the machine. */
export class Violation extends Error {
  override name = 'Violation';
  readonly invariant: keyof typeof INVARIANTS;

  constructor(invariant: keyof typeof INVARIANTS, detail: string) {
    super(`${INVARIANTS[invariant]}: ${detail}`);
    this.invariant = invariant;
  }
}
