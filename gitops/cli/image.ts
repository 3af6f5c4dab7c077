import { styleText } from 'node:util';
import { z } from 'zod';
import { counted } from '../../base/text.ts';
import { shownSiteSchema } from '../report/report.ts';
import { nextBatch } from '../report/rollout.ts';
import { type RolloutOutcome, rollOutImage } from './image-site.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { CliError, UsageError } from './output/cli-error.ts';
import { type OutputOptions, print, progress } from './output/print.ts';
import { table } from './output/table.ts';

export interface ImageOptions extends OutputOptions {
  /** Comma-separated, in the order of the rollout; default: all sites of the host. */
  readonly sites?: string;
  readonly atOnce: string;
  readonly watch: string;
  readonly maxFailures: string;
  readonly reason?: string;
}

const COLOUR = {
  swapped: 'green',
  already: 'green',
  reverted: 'red',
  failed: 'red',
  waiting: 'yellow',
  skipped: 'yellow',
} as const;
const PROGRESS_MS = 500;

/**
 * Changes the image of sites: first of one ready site alone, then of several at once. A site that was not ready before
 * is skipped, unless its newest commit changed the image. A site that fails is reverted by a commit. The rollout stops
 * if the first site fails or more than `--max-failures` fail. Every change is a commit of one site, so an interrupted
 * rollout continues when the command runs again. Exit code 1 if a site does not have the image at the end.
 */
export async function image(context: CliContext, wanted: string, options: ImageOptions): Promise<void> {
  const outcomes = new Map<string, RolloutOutcome>();
  const rollout = {
    sites: await chosenSites(context, options.sites),
    outcomes,
    waves: [1, atLeast('--at-once', options.atOnce, 1)],
    maxFailures: atLeast('--max-failures', options.maxFailures, 0),
  };
  const watchMs = atLeast('--watch', options.watch, 0) * 1000;
  const reason = options.reason ?? `tagyard image ${wanted}`;
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const active = new Set<string>();
  const line = progress();
  const interval = setInterval(() => {
    const done = [...outcomes.values()].filter(({ state }) => state !== 'waiting').length;
    line.show(`${done} of ${counted(rollout.sites.length, 'site')}; now ${[...active].join(', ')}`);
  }, PROGRESS_MS);

  const change = async (site: string) => {
    active.add(site);
    const outcome = await rollOutImage(context, { site, image: wanted, reason, watchMs }, interrupted.signal);
    active.delete(site);
    outcomes.set(site, outcome);
    line.clear();
    if (!options.json) process.stdout.write(renderOutcome(site, outcome));
  };
  try {
    for (let batch = nextBatch(rollout); batch.length > 0; batch = nextBatch(rollout)) {
      await Promise.all(batch.map(change));
      if (interrupted.signal.aborted) break;
    }
  } finally {
    clearInterval(interval);
    line.clear();
    process.off('SIGINT', interrupt);
  }
  conclude(options, wanted, rollout);
}

interface Outcomes {
  readonly sites: readonly string[];
  readonly outcomes: ReadonlyMap<string, RolloutOutcome>;
}

function conclude(options: OutputOptions, wanted: string, { sites, outcomes }: Outcomes): void {
  const untouched = sites.filter((site) => !outcomes.has(site));
  const swapped = [...outcomes.values()].filter(
    ({ state }) => state === 'swapped' || state === 'already',
  ).length;
  const report = {
    image: wanted,
    sites: [...outcomes].map(([site, outcome]) => ({ site, ...outcome })),
    untouched,
  };
  print(options, report, () => {
    const rest =
      untouched.length === 0
        ? ''
        : `, ${counted(untouched.length, 'was', 'were')} not changed: run the same command again to continue`;
    return `${swapped} of ${counted(sites.length, 'site')} ${swapped === 1 ? 'has' : 'have'} the image${rest}\n`;
  });
  if (swapped < sites.length) process.exitCode = 1;
}

function renderOutcome(site: string, { state, detail }: RolloutOutcome): string {
  return table([[site, styleText(COLOUR[state], state), detail]]);
}

async function chosenSites(context: CliContext, list: string | undefined): Promise<string[]> {
  const schema = z.object({ sites: z.array(shownSiteSchema) });
  const { sites } = schema.parse(await callProvisioner(context, { method: 'GET', path: '/sites' }));
  const present = sites.filter(({ reason }) => reason !== 'Removed' && reason !== 'Removing');
  const known = present.map(({ site }) => site);
  if (list === undefined) return known;
  const chosen = [...new Set(list.split(',').map((name) => name.trim()))];
  const unknown = chosen.filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new CliError(`--sites: this host has no site ${unknown.join(', ')}`);
  return chosen;
}

function atLeast(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!Number.isFinite(value) || value < least)
    throw new UsageError(`${option} must be a number, at least ${least}`);
  return value;
}
