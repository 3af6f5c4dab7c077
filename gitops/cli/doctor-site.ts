import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { styleText } from 'node:util';
import {
  type Check,
  hostReport,
  type VerificationReport,
  verificationRequest,
} from '../../edge/verification/contract.ts';
import { VerificationClient, VerificationUnavailable } from '../../management/clients/verification-client.ts';
import { CliError } from './cli-error.ts';
import { type Output, print } from './print.ts';
import { callProvisioner, type Where } from './provisioner-client.ts';
import { Home } from './up/home.ts';
import { readRun } from './up/run-file.ts';

/** The host's own part is there by now. */
const BUDGET_MS = 9_500;

const COLOUR = { passed: 'green', failed: 'red', skipped: 'yellow' } as const;

/**
 * Verifies one site as management does, with the host's report and the verification worker, and prints the same; no
 * status moves by it. Exit code 1 where anything is amiss.
 */
export async function doctorSite(where: Where, site: string, options: Output): Promise<void> {
  const path = `/sites/${encodeURIComponent(site)}/host-report`;
  const host = hostReport.parse(await callProvisioner(where, 'GET', path));
  const client = new VerificationClient(await workerOf(where));
  const request = verificationRequest.parse({ site: host.site, host, hostProblem: null, budget: BUDGET_MS });
  const report = await client.verify(request, randomUUID()).catch((cause: unknown) => {
    if (cause instanceof VerificationUnavailable) throw new CliError(cause.message, { cause });
    throw cause;
  });
  print(options, report, render);
  if (report.status !== 'passed') process.exitCode = 1;
}

async function workerOf({ home, env }: Where): Promise<{ url: string; secret: string }> {
  const { VERIFICATION_WORKER_URL: url, VERIFICATION_SECRET: secret = '' } = env;
  if (url) return { url, secret };
  const { verification } = await readRun(join(home, 'run.json'));
  const { verificationSecret } = await new Home(home).instance();
  return { url: verification.url, secret: verificationSecret };
}

function render({ status, checks }: VerificationReport): string {
  const failed = checks.filter((check) => check.status === 'failed').length;
  const end =
    failed === 0
      ? `${checks.length} checks, nothing is amiss`
      : `${failed} of ${checks.length} checks failed`;
  return `${checks.map(renderCheck).join('')}${status}: ${end}\n`;
}

function renderCheck({ name, status, detail, fix }: Check): string {
  const head = `${styleText(COLOUR[status], status.padEnd(7))} ${styleText('bold', name.padEnd(17))} ${detail}\n`;
  return fix === null ? head : `${head}        → ${fix}\n`;
}
