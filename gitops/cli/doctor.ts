import { styleText } from 'node:util';
import { counted } from '../../base/text.ts';
import { type PartCheck, type PlanReport, type SitesAnswer, sitesAnswerSchema } from '../report/report.ts';
import { driftFinding, findingsOf, type SiteProblem } from './findings.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { driftOf, observeLive } from './live.ts';
import { renderChecks } from './output/checks.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print, short } from './output/print.ts';
import { managementStates } from './site-states.ts';

const CONSENT_REMEDY =
  'Where the law asks for consent (EEA, United Kingdom, Switzerland), set consent: required and consentMode: basic, for the site or under regions (docs/consent.md).';

/** How many sites are named for each place. */
const MOST_NAMES = 20;

/** One remark about several sites. */
interface Note {
  readonly message: string;
  readonly sites: readonly { readonly site: string; readonly where: string }[];
  readonly remedy: string;
}

interface Diagnosis {
  readonly revision: string | null;
  /** How many sites were checked. */
  readonly sites: number;
  readonly findings: readonly SiteProblem[];
  /** What the law may forbid, depending on the visitors. It doesn't count as a problem. */
  readonly notes: readonly Note[];
  readonly blocked: PlanReport['blocked'];
  /** Every part that was asked, or could not be asked. */
  readonly checks: readonly PartCheck[];
}

/**
 * Prints each problem of a part, a site or a certificate with its reason and remedy. Asks all parts at once, each
 * within a time limit; a part that doesn't answer is a problem. Exit code 1 if there is a problem.
 */
export async function doctor(context: CliContext, options: OutputOptions): Promise<void> {
  const [known, live, states] = await Promise.all([
    knownSites(context),
    observeLive(context),
    managementStates(context),
  ]);
  const { revision, sites: reported } = known instanceof CliError ? { revision: null, sites: [] } : known;
  const sites = reported.map((one) => ({ ...one, state: states.get(one.site) ?? one.state }));
  const diagnosis: Diagnosis = {
    revision,
    sites: sites.length,
    findings: [...sites.flatMap(findingsOf), ...driftOf(live).map(driftFinding)],
    notes: consentNotes(sites),
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

/** Sites may have been created before DEFAULT_CONSENT was set, and keep their rules. */
function consentNotes(all: SitesAnswer['sites']): Note[] {
  const sites = all.flatMap(({ site, identifies: where }) => (where === undefined ? [] : [{ site, where }]));
  if (sites.length === 0) return [];
  const verb = sites.length === 1 ? 'identifies' : 'identify';
  const message = `${sites.length} of ${counted(all.length, 'site')} ${verb} visitors before they choose`;
  return [{ message, sites, remedy: CONSENT_REMEDY }];
}

async function knownSites(context: CliContext): Promise<SitesAnswer | CliError> {
  try {
    return sitesAnswerSchema.parse(await callProvisioner(context, { method: 'GET', path: '/sites' }));
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
  const advice = notes.map((note) => {
    const places = [...Map.groupBy(note.sites, ({ where }) => where)].map(([where, those]) => {
      const more = those.length > MOST_NAMES ? ` and ${those.length - MOST_NAMES} more` : '';
      const names = those.slice(0, MOST_NAMES).map(({ site }) => site);
      return `  ${where}: ${names.join(', ')}${more}\n`;
    });
    return `${styleText('yellow', 'note')} ${note.message}\n${places.join('')}  → ${note.remedy}\n`;
  });
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
