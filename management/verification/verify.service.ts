import { VerificationUnavailable } from '../../edge/verification/client.ts';
import type { HostReport, VerificationReport } from '../../edge/verification/contract.ts';
import { describeSite } from '../../sites/manifest/description.ts';
import { demandContainer } from '../access/containers.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ManagementProblem } from '../http/errors.ts';
import { canMove, isProjectionReason, type StatusReason } from '../lifecycle/status.ts';
import {
  type ContainerRow,
  type ContainerWithOperation,
  findContainer,
  lockContainer,
  moveContainer,
  setDetail,
} from '../records/containers.repository.ts';
import { withoutForeignNames } from '../records/foreign-names.repository.ts';
import { demandMatch } from '../view/etag.ts';
import { addVerification } from './verification.repository.ts';

/** The time limit of the whole verification, including the host's part. */
const BUDGET_MS = 10_000;
/** Reserved for recording the result. */
const MARGIN_MS = 500;
/** Timeout of the host report, so that the worker still has time if the host doesn't answer. */
const HOST_MS = 4_500;
/** TLS port of the hosts, used if there is no host report. */
const TLS_PORT = 443;

interface VerifyRequest {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
  readonly ifMatch?: string | undefined;
}

interface Verified {
  readonly container: ContainerWithOperation;
  readonly verification: VerificationReport;
}

/** The running verifications by container. Concurrent callers get the same one: each costs the site dozens of requests. */
export type RunningVerifications = Map<string, Promise<VerificationReport>>;

/**
 * Gets the host's report, has the verification worker judge the whole site, and sets the container's status by the
 * verdict. Throws `verification_unavailable` if there is no verdict; then the status is unchanged.
 */
export async function verifyContainer(
  context: Context,
  running: RunningVerifications,
  { id, caller, requestId, ifMatch }: VerifyRequest,
): Promise<Verified> {
  const row = await verifiableContainer(context, { id, caller, ifMatch });
  const run =
    running.get(id) ??
    startVerification(context, row, { id, caller, requestId }).finally(() => running.delete(id));
  running.set(id, run);
  const verification = await run;
  const container = await findContainer(context.db, id);
  if (container === undefined) throw new ManagementProblem('unknown_container');
  return { container, verification };
}

/** The container, if the caller may verify it now. Otherwise throws the problem to answer with. */
export async function verifiableContainer(
  { db }: Context,
  { id, caller, ifMatch }: Omit<VerifyRequest, 'requestId'>,
): Promise<ContainerWithOperation> {
  const row = await demandContainer(db, id, caller, 'act');
  demandMatch(ifMatch, row.manifest);
  if (!canMove(row.status, 'verified') && row.status !== 'verified') {
    const detail = `a container that is ${row.status} can’t be verified`;
    throw new ManagementProblem('wrong_status', { detail });
  }
  if (row.manifest.serving === false) {
    throw new ManagementProblem('wrong_status', { detail: 'serving is off: resume the container first' });
  }
  return row;
}

async function startVerification(
  context: Context,
  row: ContainerWithOperation,
  { id, caller, requestId }: VerifyRequest,
): Promise<VerificationReport> {
  const verification = await requestVerdict(context, row, requestId);
  await context.db.transaction().execute(async (trx) => {
    const locked = await lockContainer(trx, id);
    await addVerification(trx, id, verification);
    const { to, reason, detail, isKept } = statusAfter(verification, locked);
    const cause = { actor: caller.subject, requestId, revision: locked.revision, reason, detail };
    // A removal may have begun meanwhile. Then the transition is refused, and only the result is recorded.
    if (locked.status !== to) await moveContainer(trx, id, to, cause);
    else if (!isKept) await setDetail(trx, id, { status: to, detail });
  });
  return verification;
}

interface StatusAfter {
  readonly to: 'verified' | 'verification_failed';
  readonly reason: StatusReason | null;
  readonly detail: string | null;
  /** The reason from before the verification stays. */
  readonly isKept: boolean;
}

/** The status that a verification leads to, with its reason. */
export function statusAfter(
  verification: Pick<VerificationReport, 'status' | 'checks'>,
  { status_reason, status_detail }: Pick<ContainerRow, 'status_reason' | 'status_detail'>,
): StatusAfter {
  const passed = verification.status === 'passed';
  const to = passed ? 'verified' : 'verification_failed';
  // A problem with the newest manifest stays the reason, because a verification doesn't check it.
  if (isProjectionReason(status_reason)) {
    return { to, reason: status_reason, detail: status_detail, isKept: true };
  }
  if (passed) return { to, reason: null, detail: null, isKept: false };
  return { to, reason: 'checks_failed', detail: summary(verification), isKept: false };
}

async function requestVerdict(
  { db, provisioner, verifier, settings, clock, log }: Context,
  { id, site_id, manifest }: ContainerWithOperation,
  requestId: string,
): Promise<VerificationReport> {
  if (verifier === null) {
    throw new ManagementProblem('verification_unavailable', {
      detail: 'VERIFICATION_WORKER_URL is not set',
    });
  }
  const deadline = clock.now() + BUDGET_MS - MARGIN_MS;
  let host: HostReport | null = null;
  let hostProblem: string | null = null;
  try {
    host = await provisioner.hostReport(site_id, { requestId }, HOST_MS);
    if (host === null) hostProblem = 'it doesn’t know the site';
  } catch (error) {
    if (!(error instanceof ProvisionerError)) throw error;
    log.warn({ err: error, site: site_id }, 'the verification continues without a host report');
    hostProblem = await withoutForeignNames(db, id, error.message);
  }
  const { edgePublicUrl } = settings;
  const site = host?.site ?? describeSite(manifest, { edgePublicUrl, tlsPort: TLS_PORT });
  try {
    const budget = Math.floor(deadline - clock.now());
    return await verifier.verify({ site, host, hostProblem, budget }, requestId);
  } catch (error) {
    if (!(error instanceof VerificationUnavailable)) throw error;
    throw new ManagementProblem('verification_unavailable', { detail: error.message, cause: error });
  }
}

/** `dns (metrics.acme.example), certificate (…)` */
function summary({ status, checks }: Pick<VerificationReport, 'status' | 'checks'>): string {
  if (status === 'unreachable') return 'the site gave no answer, or only 5xx';
  return checks
    .filter((check) => check.status === 'failed')
    .map(({ name, subject }) => (subject === null ? name : `${name} (${subject})`))
    .join(', ');
}
