import type { FastifyBaseLogger } from 'fastify';
import type { Clock } from '../../base/clock.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';
import type { EdgeStore } from '../appliers/edge/store.ts';
import type { ContainerLogs } from '../container-logs/container-logs.ts';
import type { DesiredStateReader } from '../desired/reader.ts';
import type { ReportSite } from '../host-report/report.ts';
import type { Loop } from '../loop/loop.ts';
import type { Operations } from '../loop/operations.ts';
import type { QuotaFigures } from '../report/quotas.ts';
import type { CertificateStatus, EdgeAnswer, PartCheck } from '../report/report.ts';
import type { SiteCondition } from '../report/site-condition.ts';

/** What the routes work with. */
export interface DaemonDeps {
  readonly repo: SitesRepo;
  readonly reader: DesiredStateReader;
  readonly loop: Loop;
  readonly operations: Operations;
  readonly host: string;
  readonly ageIdentity: string;
  /** Where forges report pushes. Without it there is no route for that. */
  readonly pushWebhook?: { readonly secretFile: string; readonly branch: string };
  /** Accepted values of `x-secret`: the current one, and the previous one during a rotation. Empty: all are refused. */
  readonly secrets: readonly string[];
  /** Is enough to read plans, the status and metrics, where there is a secret. */
  readonly readToken?: string | undefined;
  /**
   * Checks the parts of this host, each within a time limit. `sites`: the applied sites. Without this function, only the
   * daemon's own parts are reported.
   */
  readonly checkParts?: (sites: readonly LoadedManifest[]) => Promise<readonly PartCheck[]>;
  /** Tries the settings of this host, which takes longer. `sites`: the applied sites. */
  readonly trySettings?: (sites: readonly LoadedManifest[]) => Promise<readonly PartCheck[]>;
  /** Makes the host report of a site. Without it there is no route for that. */
  readonly reportSite?: ReportSite;
  /** Asks the edge whether it answers for a site. Without it there is no route for that. */
  readonly askEdge?: (manifest: LoadedManifest) => Promise<EdgeAnswer>;
  /** Statuses of a site's certificates, where this host manages them. */
  readonly certificatesOf?: (site: string) => readonly CertificateStatus[];
  /** What this host reports of a site besides its status. */
  readonly conditionsOf?: (site: string) => readonly SiteCondition[];
  /** What the edge keeps of visitors. Without it there are no routes for that. */
  readonly profiles?: Pick<EdgeStore, 'profile' | 'forgetProfile'>;
  /** What the sites' containers have printed. Without it there are no routes for that. */
  readonly containerLogs?: Pick<ContainerLogs, 'page' | 'newer' | 'deleteUntil' | 'refusals'>;
  /** The provider's limits, as of the last observation. */
  readonly quotas?: () => readonly QuotaFigures[];
  /** Whether this host orders certificates for `tls: acme`. Default: it doesn't. */
  readonly hasAuthority?: boolean;
  /** Default: the system's clock. */
  readonly clock?: Clock;
  readonly logger?: FastifyBaseLogger;
}
