import type { DesiredState } from '../desired-state.ts';

/** What the loop tells, and asks, whoever sees to certificates besides it. */
export interface Certificates {
  /** What git asks for now. */
  follow(desired: DesiredState): void;
  /** Sites that have no valid certificate for a name of their own, which they can't do without, and why. */
  uncertified(): ReadonlyMap<string, string>;
}
