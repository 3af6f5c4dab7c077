import { z } from 'zod';
import { callProvisioner, type Where } from './instance/provisioner-client.ts';
import { type Output, print, short } from './output/print.ts';

const commit = z.looseObject({ site: z.string(), revision: z.string(), changed: z.boolean().default(true) });

interface EditOptions extends Output {
  readonly reason?: string;
}

/** Undoes a commit of a site's file (default: its newest), by another commit. */
export async function revert(
  where: Where,
  site: string,
  revision: string | undefined,
  options: EditOptions,
): Promise<void> {
  await edit(where, site, 'revert', revision === undefined ? {} : { revision }, options);
}

export async function suspend(where: Where, site: string, options: EditOptions): Promise<void> {
  await edit(where, site, 'suspend', {}, options);
}

export async function resume(where: Where, site: string, options: EditOptions): Promise<void> {
  await edit(where, site, 'resume', {}, options);
}

/** Takes the files of sites out that are gone for so many days. */
export async function prune(where: Where, options: EditOptions & { days: string }): Promise<void> {
  const body = { olderThanDays: Number(options.days) };
  const answer = await callProvisioner(where, 'POST', '/prune', body, reasonOf(options));
  print(options, z.object({ pruned: z.array(z.string()) }).parse(answer), ({ pruned }) =>
    pruned.length === 0 ? 'no old tombstone\n' : pruned.map((site) => `pruned ${site}\n`).join(''),
  );
}

async function edit(
  where: Where,
  site: string,
  verb: 'revert' | 'suspend' | 'resume',
  body: object,
  options: EditOptions,
): Promise<void> {
  const path = `/sites/${encodeURIComponent(site)}/${verb}`;
  const answer = commit.parse(await callProvisioner(where, 'POST', path, body, reasonOf(options)));
  print(options, answer, ({ revision, changed }) =>
    changed
      ? `${verb} of ${site} is commit ${short(revision)}; tagyard status ${site} shows it go on\n`
      : `nothing to ${verb}: ${site} is like that already at ${short(revision)}\n`,
  );
}

function reasonOf({ reason }: EditOptions): Record<string, string> {
  return reason === undefined ? {} : { 'x-reason': reason };
}
