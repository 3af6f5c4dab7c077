import { styleText } from 'node:util';
import { z } from 'zod';
import {
  isCertificate,
  type PlanReport,
  planReportSchema,
  type ShownSite,
  shownSiteSchema,
} from '../report/report.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { header, type OutputOptions, print, short } from './output/print.ts';
import { table } from './output/table.ts';

const COLOUR = { create: 'green', update: 'yellow', delete: 'red' } as const;

/** Prints the changes that would be made and the blocked ones. Exit code 2 if there are changes. */
export async function plan(context: CliContext, options: OutputOptions & { ref?: string }): Promise<void> {
  const body = options.ref === undefined ? {} : { ref: options.ref };
  const report = planReportSchema.parse(
    await callProvisioner(context, { method: 'POST', path: '/plan', body }),
  );
  print(options, report, renderPlan);
  if (report.changes.length > 0) process.exitCode = 2;
}

export async function status(
  context: CliContext,
  site: string | undefined,
  options: OutputOptions,
): Promise<void> {
  if (site !== undefined) {
    print(options, shownSiteSchema.parse(await readSite(context, site)), renderSite);
    return;
  }
  const schema = z.object({
    revision: z.string().nullable(),
    problem: z.string().nullable(),
    sites: z.array(shownSiteSchema),
  });
  const answer = await callProvisioner(context, { method: 'GET', path: '/sites' });
  print(options, schema.parse(answer), ({ problem, sites }) => {
    const head = problem === null ? '' : `${styleText('red', problem)}\n`;
    if (sites.length === 0) return `${head}no site yet\n`;
    return head + table([header('site', 'condition', 'applied', ''), ...sites.map(statusRow)]);
  });
}

export async function history(context: CliContext, site: string, options: OutputOptions): Promise<void> {
  const entry = z.object({ revision: z.string(), at: z.string(), author: z.string(), subject: z.string() });
  const { history } = z.looseObject({ history: z.array(entry) }).parse(await readSite(context, site));
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

export async function approve(context: CliContext, checksum: string): Promise<void> {
  await callProvisioner(context, { method: 'POST', path: '/approve', body: { checksum } });
  process.stdout.write(`${checksum} is approved; tagyard status shows the progress\n`);
}

async function readSite(context: CliContext, site: string): Promise<unknown> {
  return await callProvisioner(context, { method: 'GET', path: `/sites/${encodeURIComponent(site)}` });
}

function renderPlan({ revision, checksum, changes, blocked }: PlanReport): string {
  const rows = changes.map(({ site, target, key, op, summary }) => [
    styleText(COLOUR[op], op),
    site,
    target,
    key,
    summary,
  ]);
  const held = blocked.map(({ reason, detail }) => `${styleText('red', reason)}: ${detail}\n`).join('');
  const total =
    changes.length === 0 ? 'nothing to change' : `${changes.length} changes, checksum ${checksum}`;
  return `${table(rows)}${held}${total} at ${short(revision)}\n`;
}

function renderSite(site: ShownSite): string {
  const rows = site.resources.map((resource) => [
    resource.target,
    resource.key,
    resource.state,
    detailOf(resource),
  ]);
  return `${table([statusRow(site)])}\n${table([header('target', 'key', 'state', ''), ...rows])}`;
}

function detailOf(resource: ShownSite['resources'][number]): string {
  if (!isCertificate(resource)) return resource.lastError ?? '';
  return resource.reason || `until ${resource.notAfter?.slice(0, 10)}, by ${resource.issuer}`;
}

function statusRow({ site, ready, reason, applied, message }: ShownSite): string[] {
  return [site, styleText(ready ? 'green' : 'red', reason), short(applied), message];
}
