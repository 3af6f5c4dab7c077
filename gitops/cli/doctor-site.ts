import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { counted } from '../../base/text.ts';
import { VerificationClient, VerificationUnavailable } from '../../edge/verification/client.ts';
import {
  hostReport,
  type VerificationReport,
  verificationRequest,
} from '../../edge/verification/contract.ts';
import { Home } from './instance/home.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { readRun } from './instance/run-file.ts';
import { renderCheck } from './output/checks.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print } from './output/print.ts';

/** The worker's time for its checks. The host report is complete before the worker is called. */
const BUDGET_MS = 9_500;

/**
 * Verifies one site like management does, with the host report and the verification worker, and prints the report. It
 * changes no status. Exit code 1 unless the verification passed.
 */
export async function doctorSite(context: CliContext, site: string, options: OutputOptions): Promise<void> {
  const path = `/sites/${encodeURIComponent(site)}/host-report`;
  const host = hostReport.parse(await callProvisioner(context, { method: 'GET', path }));
  const client = new VerificationClient(await workerOf(context));
  const request = verificationRequest.parse({ site: host.site, host, hostProblem: null, budget: BUDGET_MS });
  const report = await client.verify(request, randomUUID()).catch((cause: unknown) => {
    if (cause instanceof VerificationUnavailable) throw new CliError(cause.message, { cause });
    throw cause;
  });
  print(options, report, render);
  if (report.status !== 'passed') process.exitCode = 1;
}

async function workerOf({ home, env }: CliContext): Promise<{ url: string; secret: string }> {
  const { VERIFICATION_WORKER_URL: url, VERIFICATION_SECRET: secret = '' } = env;
  if (url) return { url, secret };
  const { verification } = await readRun(join(home, 'run.json'));
  const { verificationSecret } = await new Home(home).instance();
  return { url: verification.url, secret: verificationSecret };
}

function render({ status, checks }: VerificationReport): string {
  const failed = checks.filter((check) => check.status === 'failed').length;
  const summary =
    failed === 0
      ? `${counted(checks.length, 'check')}, no problem found`
      : `${failed} of ${counted(checks.length, 'check')} failed`;
  return `${checks.map(renderCheck).join('')}${status}: ${summary}\n`;
}
