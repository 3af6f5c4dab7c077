import { z } from 'zod';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { type OutputOptions, print, short } from './output/print.ts';

const commit = z.looseObject({ site: z.string(), revision: z.string(), changed: z.boolean().default(true) });

interface EditOptions extends OutputOptions {
  readonly reason?: string;
}

interface Edit {
  readonly site: string;
  readonly verb: 'revert' | 'suspend' | 'resume';
  readonly body?: { readonly revision?: string };
}

/** Commits the site's file as it was before `revision`, by default before its newest commit. */
export async function revert(
  context: CliContext,
  site: string,
  revision: string | undefined,
  options: EditOptions,
): Promise<void> {
  await edit(
    context,
    { site, verb: 'revert', ...(revision === undefined ? {} : { body: { revision } }) },
    options,
  );
}

export async function suspend(context: CliContext, site: string, options: EditOptions): Promise<void> {
  await edit(context, { site, verb: 'suspend' }, options);
}

export async function resume(context: CliContext, site: string, options: EditOptions): Promise<void> {
  await edit(context, { site, verb: 'resume' }, options);
}

/** Deletes the files of sites that were removed at least `days` days ago. */
export async function prune(context: CliContext, options: EditOptions & { days: string }): Promise<void> {
  const answer = await callProvisioner(context, {
    method: 'POST',
    path: '/prune',
    body: { olderThanDays: Number(options.days) },
    headers: reasonHeader(options),
  });
  print(options, z.object({ pruned: z.array(z.string()) }).parse(answer), ({ pruned }) =>
    pruned.length === 0 ? 'no old tombstone\n' : pruned.map((site) => `pruned ${site}\n`).join(''),
  );
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
  return reason === undefined ? {} : { 'x-reason': reason };
}
