import { styleText } from 'node:util';
import { z } from 'zod';
import { shownSiteSchema } from '../report/report.ts';
import { type RolloutOutcome, rollSite } from './image-site.ts';
import { callProvisioner, type Where } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { type Output, print, progress } from './output/print.ts';
import { table } from './output/table.ts';

export interface ImageOptions extends Output {
  /** Comma-separated, in the order in which they are taken; default: all of the host. */
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
const SHOW_MS = 500;

/**
 * Brings sites to an image: the first well one alone and watched, then the others a few at a time. A site that wasn't well
 * before is skipped; one that fails goes back by a commit that reverts its own; where the first one does, or too many,
 * the rest is left as it is. Each step
 * is a commit of one site, so that whoever ends it in between runs it again and goes on. Exit code 1 where a site
 * doesn't have the image at the end.
 */
export async function image(where: Where, wanted: string, options: ImageOptions): Promise<void> {
  const sites = await chosenSites(where, options.sites);
  const atOnce = atLeast('--at-once', options.atOnce, 1);
  const maxFailures = atLeast('--max-failures', options.maxFailures, 0);
  const watchMs = atLeast('--watch', options.watch, 0) * 1000;
  const outcomes = new Map<string, RolloutOutcome>();
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  process.once('SIGINT', interrupt);
  const reason = options.reason ?? `tagyard image ${wanted}`;
  const under = new Set<string>();
  const line = progress();
  const shown = setInterval(() => {
    const done = [...outcomes.values()].filter(({ state }) => state !== 'waiting').length;
    line.show(`${done} of ${sites.length} sites; at ${[...under].join(', ')}`);
  }, SHOW_MS);

  const roll = async (site: string) => {
    under.add(site);
    const outcome = await rollSite(where, { site, image: wanted, reason, watchMs }, interrupted.signal);
    under.delete(site);
    outcomes.set(site, outcome);
    line.clear();
    if (!options.json) process.stdout.write(render([[site, outcome]]));
  };
  try {
    // The first well one tells whether the image is any good; only then do others follow.
    let tried = false;
    for (let at = 0; at < sites.length; ) {
      const batch = sites.slice(at, at + (tried ? atOnce : 1));
      await Promise.all(batch.map(roll));
      at += batch.length;
      if (interrupted.signal.aborted || failures(outcomes) > (tried ? maxFailures : 0)) break;
      tried ||= batch.some((site) => outcomes.get(site)?.state !== 'skipped');
    }
  } finally {
    clearInterval(shown);
    line.clear();
    process.off('SIGINT', interrupt);
  }
  conclude(options, wanted, sites, outcomes);
}

function conclude(
  options: Output,
  wanted: string,
  sites: readonly string[],
  outcomes: ReadonlyMap<string, RolloutOutcome>,
): void {
  const left = sites.filter((site) => !outcomes.has(site));
  const well = [...outcomes.values()].filter(
    ({ state }) => state === 'swapped' || state === 'already',
  ).length;
  const report = {
    image: wanted,
    sites: [...outcomes].map(([site, outcome]) => ({ site, ...outcome })),
    untouched: left,
  };
  print(options, report, () => {
    const rest =
      left.length === 0 ? '' : `, ${left.length} were not touched: run the same command again to go on`;
    return `${well} of ${sites.length} sites have the image${rest}\n`;
  });
  if (well < sites.length) process.exitCode = 1;
}

function failures(outcomes: ReadonlyMap<string, RolloutOutcome>): number {
  return [...outcomes.values()].filter(({ state }) => state === 'reverted' || state === 'failed').length;
}

function render(rows: readonly (readonly [string, RolloutOutcome])[]): string {
  return table(rows.map(([site, { state, detail }]) => [site, styleText(COLOUR[state], state), detail]));
}

async function chosenSites(where: Where, list: string | undefined): Promise<string[]> {
  const schema = z.object({ sites: z.array(shownSiteSchema) });
  const { sites } = schema.parse(await callProvisioner(where, 'GET', '/sites'));
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
    throw new CliError(`${option} must be a number, at least ${least}`);
  return value;
}
