import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { counted, escapeHidden } from '../../base/text.ts';
import { describeProblem } from '../../sites/manifest/problem.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { siteAt } from '../../sites/repo/listing.ts';
import type { PlanReport } from '../report/report.ts';
import type { CliContext } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { short } from './output/print.ts';
import { readPlan } from './sites.ts';
import { checkFiles } from './validate.ts';

export interface CiOptions {
  /** The ref of the checkout. */
  readonly ref?: string;
}

/** The manifests of the sites that shall exist. */
type Present = ReadonlyMap<string, Manifest>;
type PlannedChange = PlanReport['changes'][number];

/**
 * Checks the manifests of a checkout, alone and with each other, plans its ref, and prints both as Markdown for a pull
 * request. Exit code 1 if a manifest is invalid or there is no plan, 2 if something would change.
 */
export async function ci(context: CliContext, folder: string, { ref }: CiOptions): Promise<void> {
  const names = (await readdir(folder, { withFileTypes: true }))
    .filter((entry) => entry.isFile() && siteAt(entry.name) !== null)
    .map(({ name }) => name)
    .sort();
  const { problems, manifests } = await checkFiles(names.map((name) => join(folder, name)));
  const present = new Map(
    manifests.filter(({ state }) => state === 'present').map((manifest) => [manifest.site, manifest]),
  );
  const planned = ref === undefined ? null : await planOf(context, ref);
  if (problems.length > 0 || typeof planned === 'string') process.exitCode = 1;
  else if (planned !== null && planned.changes.length > 0) process.exitCode = 2;
  const sections = [
    `## Tagyard: ${problems.length > 0 || typeof planned === 'string' ? 'not ready' : headline(planned)}`,
    problems.length === 0
      ? counted(names.length, 'manifest is valid.', 'manifests are valid.')
      : section(
          'Invalid',
          problems.map((problem) => `- ${describeProblem(problem.file, problem)}`),
        ),
    ...planSections(planned, present),
  ];
  process.stdout.write(`${sections.filter(Boolean).join('\n\n')}\n`);
}

/** The plan of a ref, or why there is none: a refused proposal says so in its report, too. */
async function planOf(context: CliContext, ref: string): Promise<PlanReport | string> {
  try {
    return await readPlan(context, ref);
  } catch (error) {
    if (error instanceof CliError) return error.message;
    throw error;
  }
}

function headline(planned: PlanReport | null): string {
  if (planned === null) return 'the manifests are valid, nothing was planned';
  const { changes, revision } = planned;
  const sites = new Set(changes.map(({ site }) => site)).size;
  const total =
    changes.length === 0
      ? 'nothing to change'
      : `${counted(changes.length, 'change')} of ${counted(sites, 'site')}`;
  return `${total} at ${short(revision)}`;
}

function planSections(planned: PlanReport | string | null, present: Present): string[] {
  if (planned === null) return [];
  if (typeof planned === 'string') return [section('No plan', [`! ${planned}`])];
  const { changes, blocked } = planned;
  const bySite = Map.groupBy(changes, ({ site }) => site);
  const held = changes.filter((change) => change.held.length > 0).length;
  return [
    section(
      'Would go off the air',
      [...bySite].flatMap(([site, own]) =>
        lossOf(own, present.get(site)).map((loss) => `- ${site}: ${loss}`),
      ),
    ),
    section(
      held === 0 ? 'Problems' : `Problems, and what holds ${counted(held, 'change')}`,
      blocked.map(({ reason, detail }) => `! ${reason}: ${detail}`),
    ),
    section(
      'Changes',
      [...bySite].flatMap(([site, own]) => [`@@ ${site} @@`, ...own.map(changeLine)]),
    ),
  ];
}

/** Targets whose objects lead visitors to a site. */
const PUBLIC_TARGETS: ReadonlySet<string> = new Set(['proxy', 'gateway', 'kv', 'route', 'dns']);

/** What visitors of a site would lose. */
function lossOf(changes: readonly PlannedChange[], manifest: Manifest | undefined): string[] {
  const deleted = changes.filter(({ op, target }) => op === 'delete' && PUBLIC_TARGETS.has(target));
  if (deleted.length > 0 && manifest === undefined) return ['everything of it is removed'];
  const lost = deleted.map(({ target, key }) => `${target} ${key} is removed`);
  // The edge reads it from the registry in KV.
  const isOff = manifest?.serving === false && changes.some(({ target }) => target === 'kv');
  return isOff ? ['the edge answers nothing (serving: false)', ...lost] : lost;
}

const SIGN = { create: '+', update: '!', delete: '-' } as const;

function changeLine({ op, target, key, summary, drift, found, held }: PlannedChange): string {
  const what = drift ? `was ${summary}, is ${found ?? 'missing'}` : summary;
  const why = held.length === 0 ? '' : ` (held: ${held.join(', ')})`;
  return `${SIGN[op]} ${op} ${target} ${key}: ${what}${why}`;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `**${title}**\n\n${block(lines)}`;
}

/** Characters of a block and of a line: forges refuse a comment of more than 65,536. */
const MAX_BLOCK = 15_000;
const MAX_LINE = 500;

/**
 * Lines as a code block, in which no text is Markdown, a mention or a link. A line begins with a sign of ours and has no
 * line break, so that no text from git can end the block.
 */
function block(lines: readonly string[]): string {
  const shown: string[] = [];
  let room = MAX_BLOCK;
  for (const line of lines) {
    const text = escapeHidden(line).slice(0, MAX_LINE);
    room -= text.length + 1;
    if (room < 0) break;
    shown.push(text);
  }
  const left = lines.length - shown.length;
  if (left > 0) shown.push(`… and ${counted(left, 'more line')}`);
  return ['```diff', ...shown, '```'].join('\n');
}
