import { styleText } from 'node:util';
import { z } from 'zod';
import { type PlanReport, planReportSchema, shownSiteSchema } from '../report/report.ts';
import { findingsOf, type SiteProblem } from './findings.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { type OutputOptions, print, short } from './output/print.ts';

const sitesAnswer = z.object({ revision: z.string().nullable(), sites: z.array(shownSiteSchema) });

interface Diagnosis {
  readonly revision: string | null;
  /** How many sites were checked. */
  readonly sites: number;
  readonly findings: readonly SiteProblem[];
  readonly blocked: PlanReport['blocked'];
}

/** Prints each problem of a site or certificate with its reason and remedy. Exit code 1 if there is a problem. */
export async function doctor(context: CliContext, options: OutputOptions): Promise<void> {
  const { revision, sites } = sitesAnswer.parse(
    await callProvisioner(context, { method: 'GET', path: '/sites' }),
  );
  const diagnosis: Diagnosis = {
    revision,
    sites: sites.length,
    findings: sites.flatMap(findingsOf),
    blocked: revision === null ? [] : await blockedChanges(context),
  };
  print(options, diagnosis, render);
  if (diagnosis.findings.length + diagnosis.blocked.length > 0) process.exitCode = 1;
}

async function blockedChanges(context: CliContext): Promise<PlanReport['blocked']> {
  const plan = await callProvisioner(context, { method: 'POST', path: '/plan', body: {} });
  return planReportSchema.parse(plan).blocked;
}

function render({ revision, sites, findings, blocked }: Diagnosis): string {
  const problems = findings.map(
    ({ site, reason, message, meaning, remedy }) =>
      `${styleText('bold', site)}: ${styleText('red', reason)}, ${meaning}\n  ${message}\n  → ${remedy}\n`,
  );
  const held = blocked.map(({ reason, detail }) => `${styleText('yellow', reason)}: ${detail}\n`);
  const well = sites - new Set(findings.map(({ site }) => site)).size;
  return `${[...problems, ...held].join('')}${well} of ${sites} sites are well at ${short(revision)}\n`;
}
