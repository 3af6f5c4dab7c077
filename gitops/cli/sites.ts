import { styleText } from 'node:util';
import { z } from 'zod';
import {
  isCertificate,
  type PlanReport,
  planReportSchema,
  type ShownSite,
  shownSiteSchema,
} from '../report/report.ts';
import { header, type Output, print, short } from './print.ts';
import { callProvisioner, type Where } from './provisioner-client.ts';
import { table } from './table.ts';

const COLOUR = { create: 'green', update: 'yellow', delete: 'red' } as const;

/** Prints what would change and what is held back; exit code 2 where there is anything. */
export async function plan(where: Where, options: Output & { ref?: string }): Promise<void> {
  const body = options.ref === undefined ? {} : { ref: options.ref };
  const report = planReportSchema.parse(await callProvisioner(where, 'POST', '/plan', body));
  print(options, report, renderPlan);
  if (report.changes.length > 0) process.exitCode = 2;
}

export async function status(where: Where, site: string | undefined, options: Output): Promise<void> {
  if (site !== undefined) {
    const one = shownSiteSchema.parse(
      await callProvisioner(where, 'GET', `/sites/${encodeURIComponent(site)}`),
    );
    print(options, one, renderSite);
    return;
  }
  const schema = z.object({
    revision: z.string().nullable(),
    problem: z.string().nullable(),
    sites: z.array(shownSiteSchema),
  });
  print(options, schema.parse(await callProvisioner(where, 'GET', '/sites')), ({ problem, sites }) => {
    const head = problem === null ? '' : `${styleText('red', problem)}\n`;
    if (sites.length === 0) return `${head}no site yet\n`;
    return head + table([header('site', 'condition', 'applied', ''), ...sites.map(statusRow)]);
  });
}

export async function history(where: Where, site: string, options: Output): Promise<void> {
  const entry = z.object({ revision: z.string(), at: z.string(), author: z.string(), subject: z.string() });
  const schema = z.looseObject({ history: z.array(entry) });
  const { history } = schema.parse(await callProvisioner(where, 'GET', `/sites/${encodeURIComponent(site)}`));
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

export async function approve(where: Where, checksum: string): Promise<void> {
  await callProvisioner(where, 'POST', '/approve', { checksum });
  process.stdout.write(`${checksum} is approved; tagyard status shows it go on\n`);
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
  const rows = site.resources.map((one) => [one.target, one.key, one.state, sayOf(one)]);
  return `${table([statusRow(site)])}\n${table([header('target', 'key', 'state', ''), ...rows])}`;
}

function sayOf(one: ShownSite['resources'][number]): string {
  if (!isCertificate(one)) return one.lastError ?? '';
  return one.reason || `until ${one.notAfter?.slice(0, 10)}, by ${one.issuer}`;
}

function statusRow({ site, ready, reason, applied, message }: ShownSite): string[] {
  return [site, styleText(ready ? 'green' : 'red', reason), short(applied), message];
}
