import type { Log } from '../../base/log.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { Applier } from '../appliers/contract.ts';
import type { EdgeStore } from '../appliers/edge/store.ts';
import type { Certificates } from '../certificates/contract.ts';
import type { ContainerLogs } from '../container-logs/container-logs.ts';
import type { ReportSite } from '../host-report/report.ts';
import type { PartCheck } from '../report/report.ts';
import type { SiteCondition } from '../report/site-condition.ts';

/** What the daemon needs of the place where sites run: a machine, or a Kubernetes cluster. */
export interface Host {
  /** The appliers in the order of their registrations. */
  readonly appliers: readonly Applier[];
  readonly certificates: Certificates;
  /** Where the edge keeps visitors' profiles. */
  readonly profiles: Pick<EdgeStore, 'profile' | 'forgetProfile'>;
  /** What the sites' containers have printed; unset: nothing keeps that here. */
  readonly containerLogs?: ContainerLogs;
  /** Reports the state of a site to a verification. */
  readonly reportSite: ReportSite;
  /** What this host reports of a site besides its status; unset: nothing. */
  conditionsOf?(site: string): readonly SiteCondition[];
  /** Checks the parts that only this host can reach. `sites`: the applied sites. */
  checkParts(sites: readonly LoadedManifest[]): Promise<PartCheck[]>;
  /** Tries the settings, which takes longer. `sites`: the applied sites. */
  trySettings(sites: readonly LoadedManifest[]): Promise<PartCheck[]>;
}

export interface HostOptions {
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface ClusterOptions extends HostOptions {
  /** The number of commits up to the revision that is in force; `null`: none is in force. */
  ordinal(): Promise<number | null>;
}
