import type { DesiredState } from '../desired/desired-state.ts';
import type { CertificateStatus } from '../report/report.ts';

/** Manages certificates independently of the loop. */
export interface Certificates {
  /** Sets the desired state: its names get certificates, others lose theirs. */
  follow(desired: DesiredState): void;
  /** Sites whose origin or preview hostname lacks a valid certificate, each with the hostname and the reason. */
  uncertified(): ReadonlyMap<string, string>;
  /** The statuses of those names of a site that have been checked. */
  statuses(site: string): readonly CertificateStatus[];
  /** Calls `onChange` with a site whenever one of its certificates or their states changes. */
  start(onChange: (site: string) => void): void;
  stop(): Promise<void>;
}

/** Combines several into one. Each name belongs to one of them. */
export function combineCertificates(all: readonly Certificates[]): Certificates {
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
