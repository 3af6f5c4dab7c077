import type { HostReport, VerificationReport } from '../../edge/verification/contract.ts';
import { describeSite } from '../../gitops/manifest/description.ts';
import { demandContainer } from '../containers/change.service.ts';
import {
  type ContainerWithOperation,
  findContainer,
  lockContainer,
  moveContainer,
  setDetail,
} from '../records/containers.repository.ts';
import { canMove, PROJECTION_REASONS, type StatusReason } from '../lifecycle/status.ts';
import type { Context } from '../context/context.ts';
import type { Actor } from '../db/database.ts';
import { ProblemError } from '../http/errors.ts';
import { ProvisionerError } from '../clients/provisioner-client.ts';
import { VerificationUnavailable } from '../clients/verification-client.ts';
import { addVerification } from './verification.repository.ts';

/** In all, the host's part included. */
const BUDGET_MS = 10_000;
/** What is left for putting it into the database. */
const MARGIN_MS = 500;
/** A host that doesn't answer must leave the worker the time it needs. */
const HOST_MS = 4_500;
/** TLS on the hosts, where the host itself can't say on which port. */
const TLS_PORT = 443;

export interface VerifyRequest {
  readonly id: string;
  readonly caller: Actor;
  readonly requestId: string;
}

export interface Verified {
  readonly container: ContainerWithOperation;
  readonly verification: VerificationReport;
}

/** Verifications under way: who asks for one meanwhile gets the same, since each costs the site dozens of requests. */
export type Underway = Map<string, Promise<VerificationReport>>;

/**
 * Asks the host what only it can see, hands that to the verification worker, which judges the site as a whole, and
 * moves the container's status by its word. Throws `verification_unavailable` where there is no word: nothing moves.
 */
export async function verifyContainer(
  context: Context,
  underway: Underway,
  { id, caller, requestId }: VerifyRequest,
): Promise<Verified> {
  const row = await demandContainer(context, id, caller, 'act');
  if (!canMove(row.status, 'verified') && row.status !== 'verified') {
    throw new ProblemError('wrong_status', `a container that is ${row.status} can’t be verified`);
  }
  const run =
    underway.get(id) ?? begin(context, row, { id, caller, requestId }).finally(() => underway.delete(id));
  underway.set(id, run);
  const verification = await run;
  const container = await findContainer(context.db, id);
  if (container === undefined) throw new ProblemError('unknown_container');
  return { container, verification };
}

async function begin(
  context: Context,
  row: ContainerWithOperation,
  { id, caller, requestId }: VerifyRequest,
): Promise<VerificationReport> {
  const verification = await ask(context, row, requestId);
  const passed = verification.status === 'passed';
  const to = passed ? 'verified' : 'verification_failed';
  await context.db.transaction().execute(async (trx) => {
    await addVerification(trx, id, verification);
    const { status, revision, status_reason, status_detail } = await lockContainer(trx, id);
    const cause = { actor: caller.subject, requestId, revision };
    const words = passed
      ? { reason: null, detail: null }
      : ({ reason: 'checks_failed', detail: summary(verification) } as const);
    const kept = status_reason !== null && outlasts(status_reason, passed);
    const said = kept ? { reason: status_reason, detail: status_detail } : words;
    // It may be on its way out by now: the result is kept, the status is not ours any more.
    if (status !== to) await moveContainer(trx, id, to, { ...cause, ...said });
    else if (!kept && words.detail !== null) await setDetail(trx, id, words.detail);
  });
  return verification;
}

/** Trouble that a verification neither finds nor ends. */
function outlasts(reason: StatusReason, passed: boolean): boolean {
  return PROJECTION_REASONS.includes(reason) || (passed && reason === 'host_trouble');
}

async function ask(
  { provisioner, verifier, settings, log }: Context,
  { site_id, manifest }: ContainerWithOperation,
  requestId: string,
): Promise<VerificationReport> {
  if (verifier === null) {
    throw new ProblemError('verification_unavailable', 'VERIFICATION_WORKER_URL is not set');
  }
  const deadline = performance.now() + BUDGET_MS - MARGIN_MS;
  let host: HostReport | null = null;
  let hostProblem: string | null = null;
  try {
    host = await provisioner.hostReport(site_id, { requestId }, HOST_MS);
    if (host === null) hostProblem = 'it doesn’t know the site';
  } catch (error) {
    if (!(error instanceof ProvisionerError)) throw error;
    log.warn({ err: error, site: site_id }, 'no host report');
    hostProblem = error.message;
  }
  const { edgePublicUrl } = settings;
  const site = host?.site ?? describeSite(manifest, { edgePublicUrl, tlsPort: TLS_PORT });
  try {
    const budget = Math.floor(deadline - performance.now());
    return await verifier.verify({ site, host, hostProblem, budget }, requestId);
  } catch (error) {
    if (!(error instanceof VerificationUnavailable)) throw error;
    throw new ProblemError('verification_unavailable', error.message, {}, { cause: error });
  }
}

/** `dns (metrics.acme.example), certificate (…)` */
function summary({ status, checks }: VerificationReport): string {
  if (status === 'unreachable') return 'nothing of the site answered';
  return checks
    .filter((check) => check.status === 'failed')
    .map(({ name, subject }) => (subject === null ? name : `${name} (${subject})`))
    .join(', ');
}
