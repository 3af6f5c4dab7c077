import { styleText } from 'node:util';
import { counted } from '../base/text.ts';
import type { PartCheck, PlanReport } from '../report/report.ts';
import { driftFinding, findingsOf, type SiteProblem } from './findings.ts';
import type { Answers } from './instance/answer-schemas.ts';
import { readAnswer } from './instance/answers.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { driftOf, observeLive } from './live.ts';
import { renderChecks } from './output/checks.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print, short } from './output/print.ts';

const CONSENT_REMEDY =
  'Where the law asks for consent (EEA, United Kingdom, Switzerland), set consent: required and consentMode: basic, for the site or under regions (docs/consent.md).';

interface Diagnosis {
  readonly revision: string | null;
  /** How many sites were checked. */
  readonly sites: number;
  readonly findings: readonly SiteProblem[];
  /** What the law may forbid, depending on the visitors. It doesn't count as a problem. */
  readonly notes: readonly { readonly site: string; readonly message: string; readonly remedy: string }[];
  readonly blocked: PlanReport['blocked'];
  /** Every part that was asked, or could not be asked. */
  readonly checks: readonly PartCheck[];
}

/**
 * Prints each problem of a part, a site or a certificate with its reason and remedy. Asks all parts at once, each
 * within a time limit; a part that doesn't answer is a problem. Exit code 1 if there is a problem.
 */
export async function doctor(context: CliContext, options: OutputOptions): Promise<void> {
  const [known, live] = await Promise.all([knownSites(context), observeLive(context)]);
  const { revision, sites } = known instanceof CliError ? { revision: null, sites: [] } : known;
  const diagnosis: Diagnosis = {
    revision,
    sites: sites.length,
    findings: [...sites.flatMap(findingsOf), ...driftOf(live).map(driftFinding)],
    notes: sites.flatMap(({ site, identifies }) =>
      identifies === undefined
        ? []
        : [
            {
              site,
              message: `identifies visitors before they choose: ${identifies}`,
              remedy: CONSENT_REMEDY,
            },
          ],
    ),
    blocked: live.plan?.blocked.filter(({ reason }) => reason !== 'observe_failed') ?? [],
    // Before the first commit there is nothing to observe.
    checks: live.checks.filter(
      ({ name }) => revision !== null || name !== 'targets' || known instanceof CliError,
    ),
  };
  const { findings, blocked, checks } = diagnosis;
  const isFailed = checks.some(({ status }) => status === 'failed');
  if (findings.length + blocked.length > 0 || isFailed) process.exitCode = 1;
  print(options, diagnosis, render);
  // Thrown last: the state of the other parts helps if the provisioner doesn't answer.
  if (known instanceof CliError) throw known;
}

async function knownSites(context: CliContext): Promise<Answers['sites'] | CliError> {
  try {
    return await readAnswer('sites', await callProvisioner(context, { method: 'GET', path: '/sites' }));
  } catch (error) {
    if (error instanceof CliError) return error;
    throw error;
  }
}

function render({ revision, sites, findings, notes, blocked, checks }: Diagnosis): string {
  const problems = findings.map(
    ({ site, reason, message, meaning, remedy }) =>
      `${styleText('bold', site)}: ${styleText('red', reason)}, ${meaning}\n  ${message}\n  → ${remedy}\n`,
  );
  const held = blocked.map(({ reason, detail }) => `${styleText('yellow', reason)}: ${detail}\n`);
  const advice = notes.map(
    ({ site, message, remedy }) => `${styleText('yellow', 'note')} ${site} ${message}\n  → ${remedy}\n`,
  );
  return [
    ...problems,
    ...held,
    ...advice,
    renderChecks(checks),
    summary({ revision, sites, findings, checks }),
  ].join('');
}

/** Says "well" only if nothing failed, and names what was not checked. */
function summary({ revision, sites, findings, checks }: Omit<Diagnosis, 'blocked' | 'notes'>): string {
  const named = (wanted: PartCheck['status']) => [
    ...new Set(checks.flatMap(({ name, status }) => (status === wanted ? [name] : []))),
  ];
  const failed = named('failed');
  const skipped = named('skipped');
  const others = sites - new Set(findings.map(({ site }) => site)).size;
  const unchecked = skipped.length === 0 ? '' : `; not checked: ${skipped.join(', ')}`;
  const all = counted(sites, 'site');
  if (failed.length === 0) {
    return `${others} of ${all} ${others === 1 ? 'is' : 'are'} well at ${short(revision)}${unchecked}\n`;
  }
  return `${styleText('red', `failed or not observed: ${failed.join(', ')}`)}; ${others} of ${all} ${others === 1 ? 'has' : 'have'} no other known problem${unchecked}\n`;
}
