import type { FastifyBaseLogger } from 'fastify';
import type { DesiredStateReader } from '../desired/reader.ts';
import type { ReportSite } from '../host-report/report.ts';
import type { Loop } from '../loop/loop.ts';
import type { Operations } from '../loop/operations.ts';
import type { CertificateStatus } from '../report/report.ts';
import type { SitesRepo } from '../sites-repo/sites-repo.ts';

export interface DaemonDeps {
  readonly repo: SitesRepo;
  readonly reader: DesiredStateReader;
  readonly loop: Loop;
  readonly operations: Operations;
  readonly host: string;
  readonly ageIdentity: string;
  /** Accepted values of `x-secret`: the current one first, the previous one during a rotation. Empty: nothing is served. */
  readonly secrets: readonly string[];
  /** What a verification asks of this host; without it there is no such route. */
  readonly reportSite?: ReportSite;
  /** Where the site's certificates stand, where this host sees to them. */
  readonly certificatesOf?: (site: string) => readonly CertificateStatus[];
  readonly logger?: FastifyBaseLogger;
}
