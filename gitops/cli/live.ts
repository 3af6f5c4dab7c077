import { healthSchema, type PartCheck, type PlanReport, planReportSchema } from '../report/report.ts';
import { askPart, failedPart, managementService, verificationService } from './instance/parts.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { QUICK_MS, timeoutMs } from './instance/timeout.ts';
import { CliError } from './output/cli-error.ts';

/** The present state of every part that answers in time. */
interface Live {
  /** `null`: the targets could not be observed. */
  readonly plan: PlanReport | null;
  readonly checks: readonly PartCheck[];
}

export type Drift = PlanReport['changes'][number];

/** A target without an answer counts as unobserved after this many seconds; half of `TAGYARD_TIMEOUT` if that is less. */
const OBSERVE_SECONDS = 8;
/** Longer than `OBSERVE_SECONDS`, because the provisioner reads git first. */
const PLAN_MS = 20_000;

/** Observes all targets and asks all parts at once, each within a time limit. A failure becomes a failed check. */
export async function observeLive(context: CliContext): Promise<Live> {
  const [parts, observation] = await Promise.all([hostChecks(context, HEALTH), observeTargets(context)]);
  return { plan: observation.plan, checks: [...parts, ...observation.checks] };
}

/** Asks the host, management and the verification worker likewise. The host tries its settings, too. */
export async function hostAndSettings(context: CliContext): Promise<PartCheck[]> {
  return await hostChecks(context, { ...HEALTH, path: '/health?settings=true', timeoutMs: SETTINGS_MS });
}

async function hostChecks(
  context: CliContext,
  call: Parameters<typeof callProvisioner>[1],
): Promise<PartCheck[]> {
  const health = asked(
    'provisioner',
    async () => healthSchema.parse(await callProvisioner(context, call)).checks,
  );
  return (await Promise.all([health, otherParts(context)])).flat();
}

const HEALTH: Parameters<typeof callProvisioner>[1] = { method: 'GET', path: '/health' };
/** A try of git or nginx takes up to 8 s, after the sites have been read. */
const SETTINGS_MS = 20_000;

async function observeTargets(context: CliContext): Promise<Live> {
  const timeout = Math.min(OBSERVE_SECONDS, timeoutMs(context.env, PLAN_MS) / 2_000);
  let plan: PlanReport | null = null;
  const checks = await asked('targets', async () => {
    const call = { method: 'POST', path: '/plan', body: { timeout }, timeoutMs: PLAN_MS } as const;
    plan = planReportSchema.parse(await callProvisioner(context, call));
    const unobserved = plan.blocked.filter(({ reason }) => reason === 'observe_failed');
    return unobserved.map(({ detail }) => failedPart('targets', detail));
  });
  return { plan, checks };
}

/** Checks management and the verification worker that the environment names, else those of this home's instance. */
async function otherParts({ home, env }: CliContext): Promise<PartCheck[]> {
  const run = env.INFRA_PROVISIONER_URL ? null : await readRun(`${home}/run.json`).catch(() => null);
  const limit = timeoutMs(env, QUICK_MS);
  // The secret belongs to the worker that the environment names, not to the instance's own.
  const { VERIFICATION_WORKER_URL: worker, VERIFICATION_SECRET: secret = '' } = env;
  const management = managementService(env.MANAGEMENT_URL || run?.management.url);
  const verification = async () => {
    // A stranger at that address must not get the secret.
    const worked = await askPart(verificationService(worker || run?.verification.url, ''), limit);
    if (!worker || secret === '' || worked.status !== 'passed') return worked;
    return await askPart(verificationService(worker, secret), limit);
  };
  return await Promise.all([askPart(management, limit), verification()]);
}

/** The checks of `work`, or one failed check of this name if it throws. */
async function asked(name: string, work: () => Promise<PartCheck[]>): Promise<PartCheck[]> {
  try {
    return await work();
  } catch (error) {
    return [
      failedPart(name, error instanceof CliError ? error.message : `unexpected answer: ${String(error)}`),
    ];
  }
}

/** The planned changes that repair drift. */
export function driftOf({ plan }: Live): readonly Drift[] {
  return plan?.changes.filter(({ drift }) => drift) ?? [];
}

/** `dns shop.example.net/A: was …, is …`. */
export function describeDrift({ target, key, summary, found }: Drift): string {
  return `${target} ${key}: was ${summary}, is ${found ?? 'missing'}`;
}
