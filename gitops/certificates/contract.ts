import type { DesiredState } from '../desired/desired-state.ts';
import type { CertificateStatus } from '../report/report.ts';

/** Whoever sees to certificates beside the loop: what it is told and asked. */
export interface Certificates {
  /** What git asks for now. */
  follow(desired: DesiredState): void;
  /** Sites that have no valid certificate for a name of their own, which they can't do without, and why. */
  uncertified(): ReadonlyMap<string, string>;
  /** Where the names of a site stand, as far as they were looked at. */
  statuses(site: string): readonly CertificateStatus[];
  /** `onChange` hears of a site whose certificates or their states have changed. */
  start(onChange: (site: string) => void): void;
  stop(): Promise<void>;
}

/** Several as one; a site's names are all with one of them. */
export function together(all: readonly Certificates[]): Certificates {
  return {
    follow: (desired) => {
      for (const one of all) one.follow(desired);
    },
    uncertified: () => new Map(all.flatMap((one) => [...one.uncertified()])),
    statuses: (site) => all.flatMap((one) => one.statuses(site)),
    start: (onChange) => {
      for (const one of all) one.start(onChange);
    },
    stop: async () => {
      await Promise.all(all.map((one) => one.stop()));
    },
  };
}
