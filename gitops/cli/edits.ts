import { z } from 'zod';
import { numberOf } from './instance/number.ts';
import { type CliContext, callProvisioner, headerText } from './instance/provisioner-client.ts';
import { ask } from './output/ask.ts';
import { CliError, ServiceProblem } from './output/cli-error.ts';
import { type OutputOptions, print, short } from './output/print.ts';

const commit = z.looseObject({ site: z.string(), revision: z.string(), changed: z.boolean().default(true) });

interface EditOptions extends OutputOptions {
  readonly reason?: string;
}

interface Edit {
  readonly site: string;
  readonly verb: 'revert' | 'suspend' | 'resume';
  readonly body?: object;
}

interface RevertOptions extends EditOptions {
  /** Skips the confirmation of a revert that removes the site. */
  readonly yes?: true;
}

/**
 * Commits the site's file as it was before `revision`, by default before its newest commit. If that removes the site,
 * the user must type its name first or pass `--yes`.
 */
export async function revert(
  context: CliContext,
  site: string,
  revision: string | undefined,
  options: RevertOptions,
): Promise<void> {
  const commitRevert = (removal: boolean) =>
    edit(context, { site, verb: 'revert', body: { revision, removal } }, options);
  try {
    await commitRevert(options.yes === true);
  } catch (error) {
    if (!(error instanceof ServiceProblem) || error.code !== 'removal_unconfirmed') throw error;
    const typed = await ask(`${error.message}.\nType the site's name to remove it: `);
    if (typed === null) throw new CliError(`${error.message}; to remove the site, run this again with --yes`);
    if (typed !== site) throw new CliError(`${site} is not removed: its name was not typed`);
    await commitRevert(true);
  }
}

interface SuspendOptions extends EditOptions {
  /** Stops the serving instead of the changes: the edge answers nothing of the site, and changes are still applied. */
  readonly stopServing?: true;
}

export async function suspend(context: CliContext, site: string, options: SuspendOptions): Promise<void> {
  const serving = options.stopServing !== true;
  await edit(context, { site, verb: 'suspend', body: { serving } }, options);
}

export async function resume(context: CliContext, site: string, options: EditOptions): Promise<void> {
  await edit(context, { site, verb: 'resume' }, options);
}

/** Deletes the files of sites that were removed at least `days` days ago. */
export async function prune(context: CliContext, options: EditOptions & { days: string }): Promise<void> {
  const answer = await callProvisioner(context, {
    method: 'POST',
    path: '/prune',
    body: { olderThanDays: daysOf(options.days) },
    headers: reasonHeader(options),
  });
  print(options, z.object({ pruned: z.array(z.string()) }).parse(answer), ({ pruned }) =>
    pruned.length === 0 ? 'no old tombstone\n' : pruned.map((site) => `pruned ${site}\n`).join(''),
  );
}

function daysOf(text: string): number {
  return numberOf(text, {
    isPermitted: (days) => days >= 0 && days <= 36_500,
    problem: `--days ${text}: give a number of days from 0 to 36500`,
  });
}

async function edit(
  context: CliContext,
  { site, verb, body = {} }: Edit,
  options: EditOptions,
): Promise<void> {
  const answer = await callProvisioner(context, {
    method: 'POST',
    path: `/sites/${encodeURIComponent(site)}/${verb}`,
    body,
    headers: reasonHeader(options),
  });
  print(options, commit.parse(answer), ({ revision, changed }) =>
    changed
      ? `${verb} of ${site} is commit ${short(revision)}; tagyard status ${site} shows the progress\n`
      : `nothing to ${verb}: ${site} is already in that state at ${short(revision)}\n`,
  );
}

function reasonHeader({ reason }: EditOptions): Record<string, string> {
  return reason === undefined ? {} : { 'x-reason': headerText(reason) };
}
