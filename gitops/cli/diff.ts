import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { execa } from 'execa';
import { diffReportSchema, type SiteDiff } from '../report/report.ts';
import { callProvisioner, demandSite, type Where } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { type Output, print } from './output/print.ts';

/**
 * Shows how the manifests of a revision (default: the newest) differ from what was last applied of them, in git's own
 * format. Exit code 2 where they do.
 */
export async function diff(
  where: Where,
  site: string | undefined,
  options: Output & { ref?: string },
): Promise<void> {
  const body = options.ref === undefined ? {} : { ref: options.ref };
  const { sites } = diffReportSchema.parse(await callProvisioner(where, 'POST', '/diff', body));
  const shown = sites.filter((one) => site === undefined || one.site === site);
  if (site !== undefined && shown.length === 0) await demandSite(where, site);
  const text = options.json ? '' : await unified(shown);
  print(options, shown, () => text);
  if (shown.length > 0) process.exitCode = 2;
}

/** `git diff` of two folders: `applied/` and `wanted/`. */
async function unified(sites: readonly SiteDiff[]): Promise<string> {
  if (sites.length === 0) return '';
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-diff-'));
  try {
    await Promise.all(['applied', 'wanted'].map((side) => mkdir(join(dir, side))));
    for (const { site, before, after } of sites) {
      if (before !== null) await writeFile(join(dir, 'applied', `${site}.yaml`), before);
      if (after !== null) await writeFile(join(dir, 'wanted', `${site}.yaml`), after);
    }
    // Whatever decides that of our own words decides of git's.
    const colour = styleText('bold', '.') === '.' ? 'never' : 'always';
    const args = ['diff', '--no-index', '--no-prefix', `--color=${colour}`, 'applied', 'wanted'];
    const { stdout, stderr, exitCode } = await execa('git', args, { cwd: dir, reject: false });
    // 1: they differ.
    if (exitCode !== 0 && exitCode !== 1) throw new CliError(`git diff: ${stderr}`);
    return `${stdout}\n`;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
