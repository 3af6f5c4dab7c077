import { styleText } from 'node:util';
import { z } from 'zod';
import { shownHostsIn } from '../../base/host-name.ts';
import { counted } from '../../base/text.ts';
import { isCertificate } from '../report/is-certificate.ts';
import {
  approvalSchema,
  type PartCheck,
  type PlanReport,
  planReportSchema,
  type ShownSite,
  shownSiteSchema,
  sitesAnswerSchema,
} from '../report/report.ts';
import type { SiteCondition } from '../report/site-condition.ts';
import { SITE_STATES, type SiteState } from '../report/site-state.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { type Drift, describeDrift, driftOf, observeLive } from './live.ts';
import { renderChecks } from './output/checks.ts';
import { CliError } from './output/cli-error.ts';
import { header, type OutputOptions, print, short } from './output/print.ts';
import { table } from './output/table.ts';
import { isBad, managementStates, stateColour, statesIn } from './site-states.ts';

/** The history in `GET /sites/:site`. */
const historySchema = z.object({
  history: z.array(
    z.object({ revision: z.string(), at: z.string(), author: z.string(), subject: z.string() }),
  ),
});

const COLOUR = { create: 'green', update: 'yellow', delete: 'red' } as const;

/** Prints the changes that would be made, and those that are held. Exit code 2 if there are any. */
export async function plan(context: CliContext, options: OutputOptions & { ref?: string }): Promise<void> {
  const report = await readPlan(context, options.ref);
  if (report.changes.length > 0) process.exitCode = 2;
  print(options, report, renderPlan);
}

export async function readPlan(context: CliContext, ref: string | undefined): Promise<PlanReport> {
  const body = ref === undefined ? {} : { ref };
  return planReportSchema.parse(await callProvisioner(context, { method: 'POST', path: '/plan', body }));
}

/**
 * Prints the conditions of the last pass, then drift and failed checks as of now. Exit code 1 if the sites repository
 * can't be read, a site fails or its change is refused, something drifted or a check failed.
 */
export async function status(
  context: CliContext,
  site: string | undefined,
  options: OutputOptions & { readonly state?: string },
): Promise<void> {
  const [answer, live, states] = await Promise.all([
    site === undefined
      ? callProvisioner(context, { method: 'GET', path: '/sites' })
      : readSite(context, site),
    observeLive(context),
    managementStates(context),
  ]);
  const withState = (one: ShownSite) => ({ ...one, state: states.get(one.site) ?? one.state });
  const drift = driftOf(live);
  const checks = live.checks.filter(({ status: outcome }) => outcome !== 'passed');
  if (site !== undefined) {
    const own = drift.filter((change) => change.site === site);
    const shown = withState(withDrift(shownSiteSchema.parse(answer), own));
    if (isBad(shown.state) || own.length > 0 || hasFailed(checks)) process.exitCode = 1;
    print(options, { ...shown, drift: own, checks }, () => {
      const below = renderLive(own, checks);
      const resources = shown.resources.map((one) => ({ ...one, key: shownHostsIn(one.key) }));
      return shownHostsIn(`${renderSite({ ...shown, resources })}${below === '' ? '' : `\n${below}`}`);
    });
    return;
  }
  const read = sitesAnswerSchema.parse(answer);
  const wanted = statesIn(options.state);
  const all = read.sites.map(withState);
  const listed = all.filter(
    ({ state }) => wanted === null || (state !== undefined && wanted.includes(state.name)),
  );
  const shown = {
    ...read,
    sites: [...listed].sort((one, other) => Number(isBad(other.state)) - Number(isBad(one.state))),
  };
  // Before the first commit there is nothing to observe.
  const relevant = shown.revision === null ? checks.filter(({ name }) => name !== 'targets') : checks;
  const isAnyBad = shown.problem !== null || all.some(({ state }) => isBad(state));
  if (isAnyBad || drift.length > 0 || hasFailed(relevant)) process.exitCode = 1;
  print(options, { ...shown, drift, checks: relevant }, ({ problem, sites }) => {
    const head = problem === null ? '' : `${styleText('red', problem)}\n`;
    const list =
      sites.length === 0
        ? `${wanted === null ? 'no site yet' : 'no site in that state'}\n`
        : `${summaryOf(sites)}\n\n${table([header('site', 'state', 'condition', 'applied', ''), ...sites.map(statusRow)])}`;
    // Quotas are the same for all sites: a check names them.
    const own = sites.flatMap(({ site, conditions = [] }) =>
      conditions.filter(({ condition }) => condition === 'preview_failed').map((one) => ({ ...one, site })),
    );
    const named = own.map((one) => renderCondition(one, ` ${one.site}`)).join('');
    return shownHostsIn(`${head}${list}${named}${renderLive(drift, relevant)}`);
  });
}

/** `60 sites: 1 failing, 59 serving`. */
function summaryOf(sites: readonly ShownSite[]): string {
  const counts = SITE_STATES.flatMap((name) => {
    const count = sites.filter(({ state }) => state?.name === name).length;
    return count === 0 ? [] : [`${count} ${styleText(stateColour(name), name)}`];
  });
  return [counted(sites.length, 'site'), ...(counts.length === 0 ? [] : [counts.join(', ')])].join(': ');
}

const hasFailed = (checks: readonly PartCheck[]) =>
  checks.some(({ status: outcome }) => outcome === 'failed');

/** Marks resources that differ now as drifted, even if the last pass saw no difference. */
function withDrift(site: ShownSite, drift: readonly Drift[]): ShownSite {
  const ids = new Set(drift.map(({ target, key }) => `${target} ${key}`));
  const resources = site.resources.map((resource) =>
    !isCertificate(resource) && resource.state === 'applied' && ids.has(`${resource.target} ${resource.key}`)
      ? { ...resource, state: 'drifted' as const }
      : resource,
  );
  return { ...site, resources };
}

function renderLive(drift: readonly Drift[], checks: readonly PartCheck[]): string {
  const changed = drift.map(
    (change) => `${styleText('red', 'drift')} ${change.site}: ${describeDrift(change)}\n`,
  );
  // A status shows no skipped checks.
  return [...changed, renderChecks(checks.filter(({ status: outcome }) => outcome === 'failed'))].join('');
}

export async function history(context: CliContext, site: string, options: OutputOptions): Promise<void> {
  const { history } = historySchema.parse(await readSite(context, site));
  print(options, history, (entries) =>
    table(
      entries.map(({ revision, at, author, subject }) => [
        styleText('yellow', short(revision)),
        at,
        author,
        subject,
      ]),
    ),
  );
}

/**
 * Approves the guarded changes of a plan. Exit code 1 if nothing was approved or something else still holds the
 * changes.
 */
export async function approve(context: CliContext, checksum: string): Promise<void> {
  const answer = await callProvisioner(context, { method: 'POST', path: '/approve', body: { checksum } });
  const { approved, held } = approvalSchema.parse(answer);
  if (approved === 0) {
    throw new CliError(
      `nothing of the plan ${checksum} waits for an approval, so nothing was approved; tagyard plan shows what holds a change`,
    );
  }
  if (held.length > 0) {
    const reasons = held.map(({ reason, detail }) => `\n  ${reason}: ${detail}`).join('');
    throw new CliError(
      `${counted(approved, 'change is', 'changes are')} approved, but other reasons still hold ${approved === 1 ? 'it' : 'them'}:${reasons}`,
    );
  }
  process.stdout.write(
    `${counted(approved, 'change')} of ${checksum} ${approved === 1 ? 'is' : 'are'} approved; tagyard status shows the progress\n`,
  );
}

async function readSite(context: CliContext, site: string): Promise<unknown> {
  return await callProvisioner(context, { method: 'GET', path: `/sites/${encodeURIComponent(site)}` });
}

function renderPlan({ revision, checksum, changes, blocked }: PlanReport): string {
  const rows = changes.map((change) => [
    styleText(COLOUR[change.op], change.op),
    change.site,
    change.target,
    change.key,
    change.drift ? `was ${change.summary}, is ${change.found ?? 'missing'}` : change.summary,
    change.held.length === 0 ? '' : styleText('yellow', `held: ${change.held.join(', ')}`),
  ]);
  const reasons = blocked.map(({ reason, detail }) => `${styleText('red', reason)}: ${detail}\n`).join('');
  const held = changes.filter((change) => change.held.length > 0).length;
  const counts =
    held === 0 ? '' : ` (${changes.length - held} would be applied now, ${counted(held, 'is', 'are')} held)`;
  const total =
    changes.length === 0
      ? blocked.length === 0
        ? 'nothing to change'
        : 'no change, because of the above'
      : `${counted(changes.length, 'change')}${counts}, checksum ${checksum}`;
  return `${table(rows)}${reasons}${total} at ${short(revision)}\n`;
}

function renderSite(site: ShownSite): string {
  const rows = site.resources.map((resource) => [
    resource.target,
    resource.key,
    resource.state,
    detailOf(resource),
  ]);
  const conditions = (site.conditions ?? []).map((one) => renderCondition(one));
  return `${table([statusRow(site)])}${conditions.join('')}\n${table([header('target', 'key', 'state', ''), ...rows])}`;
}

function renderCondition({ condition, message }: SiteCondition, of = ''): string {
  return `${styleText('yellow', condition)}${of}: ${message}\n`;
}

function detailOf(resource: ShownSite['resources'][number]): string {
  if (!isCertificate(resource)) return resource.lastError ?? '';
  return resource.reason || `until ${resource.notAfter?.slice(0, 10)}, by ${resource.issuer}`;
}

function statusRow({ site, reason, applied, message, state }: ShownSite): string[] {
  const names = state === undefined ? [] : [state.name, ...state.also.filter((name) => name !== 'serving')];
  const [first, ...others] = names.map((name) => styleText(stateColour(name), name));
  const detail =
    message !== '' || state === undefined || state.name === 'serving' ? message : stateText(state);
  return [site, [first ?? '', ...others].join(', '), reason, short(applied), detail];
}

const stateText = ({ sentence, detail, remedy }: SiteState) =>
  [sentence, detail, remedy].filter((text) => text !== null).join(' ');
