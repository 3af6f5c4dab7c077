import type { DesiredState } from '../desired-state.ts';

/** What the loop tells, and asks, whoever sees to certificates besides it. */
export interface Certificates {
  /** What git asks for now. */
  follow(desired: DesiredState): void;
  /** Why the site isn't served over TLS under a name of its own, which it can't do without; `null`: it is. */
  uncertified(site: string): string | null;
}
