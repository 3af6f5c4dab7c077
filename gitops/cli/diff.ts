import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { devNull, tmpdir } from 'node:os';
import { join } from 'node:path';
import { styleText } from 'node:util';
import { execa } from 'execa';
import { diffReportSchema, type SiteDiff } from '../report/report.ts';
import { type CliContext, callProvisioner, requireSite } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { type OutputOptions, print } from './output/print.ts';

/**
 * Shows how the manifests of a revision (default: the newest) differ from those that are applied, in the format of
 * `git diff`. Exit code 2 if they differ.
 */
export async function diff(
  context: CliContext,
  site: string | undefined,
  options: OutputOptions & { ref?: string },
): Promise<void> {
  const body = options.ref === undefined ? {} : { ref: options.ref };
  const report = await callProvisioner(context, { method: 'POST', path: '/diff', body });
  const shown = diffReportSchema.parse(report).sites.filter((one) => site === undefined || one.site === site);
  if (site !== undefined && shown.length === 0) await requireSite(context, site);
  const text = options.json ? '' : await unifiedDiff(shown);
  print(options, shown, () => text);
  if (shown.length > 0) process.exitCode = 2;
}

/** `git diff` between two folders: `applied/` and `wanted/`. */
async function unifiedDiff(sites: readonly SiteDiff[]): Promise<string> {
  if (sites.length === 0) return '';
  const dir = await mkdtemp(join(tmpdir(), 'tagyard-diff-'));
  try {
    await Promise.all(['applied', 'wanted'].map((side) => mkdir(join(dir, side))));
    for (const { site, before, after } of sites) {
      if (before !== null) await writeFile(join(dir, 'applied', `${site}.yaml`), before);
      if (after !== null) await writeFile(join(dir, 'wanted', `${site}.yaml`), after);
    }
    // git colours its output exactly when `styleText` does.
    const colour = styleText('bold', '.') === '.' ? 'never' : 'always';
    const args = ['diff', '--no-index', '--no-prefix', `--color=${colour}`, 'applied', 'wanted'];
    // Settings of the user, such as an external program for diffs, would change the output.
    const env = { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: devNull, GIT_EXTERNAL_DIFF: undefined };
    const { stdout, stderr, exitCode } = await execa('git', args, { cwd: dir, env, reject: false });
    // git exits with 1 if the folders differ.
    if (exitCode !== 0 && exitCode !== 1) throw new CliError(`git diff: ${stderr}`);
    return `${stdout}\n`;
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
