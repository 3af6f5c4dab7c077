import { setTimeout as pause } from 'node:timers/promises';
import { styleText } from 'node:util';
import { counted } from '../../base/text.ts';
import { applyAnswerSchema, type Operation, operationSchema } from '../report/report.ts';
import { numberOf } from './instance/number.ts';
import { type CliContext, callProvisioner } from './instance/provisioner-client.ts';
import { CliError } from './output/cli-error.ts';
import { header, type OutputOptions, print, progress, short } from './output/print.ts';
import { table } from './output/table.ts';

const POLL_MS = 250;

/**
 * Applies the newest revision and waits until every operation has finished. With a checksum, it applies only if the
 * plan still has that checksum. Exit code 1 if a site failed or is not finished after `--wait` seconds.
 */
export async function apply(
  context: CliContext,
  options: OutputOptions & { checksum?: string; wait: string },
): Promise<void> {
  const waitMs = secondsOf(options.wait) * 1000;
  const deadline = performance.now() + waitMs;
  const body = options.checksum === undefined ? {} : { checksum: options.checksum };
  const accepted = applyAnswerSchema.parse(
    await callProvisioner(context, { method: 'POST', path: '/apply', body }),
  );
  const line = progress();
  const done = new Map<string, Operation>();
  const show = (site: string) =>
    line.show(
      `applying ${short(accepted.revision)}: ${done.size} of ${counted(accepted.operations.length, 'site')}, ${site}`,
    );
  for (const { site, url } of accepted.operations) {
    for (;;) {
      show(site);
      const operation = operationSchema.parse(await callProvisioner(context, { method: 'GET', path: url }));
      if (operation.finishedAt !== null) {
        done.set(site, operation);
        break;
      }
      if (performance.now() >= deadline) {
        line.clear();
        throw new CliError(
          `${site} is not finished after ${waitMs / 1000} s (${operation.status}, ${counted(accepted.operations.length - done.size, 'site')} open); the provisioner continues, and tagyard status shows the progress`,
        );
      }
      await pause(POLL_MS);
    }
  }
  line.clear();
  const operations = [...done.values()];
  print(options, { revision: accepted.revision, operations }, render);
  if (operations.some(({ status }) => status !== 'succeeded')) process.exitCode = 1;
}

function secondsOf(text: string): number {
  return numberOf(text, {
    isPermitted: (seconds) => seconds >= 0,
    problem: `--wait ${text}: give a number of seconds`,
  });
}

function render({ revision, operations }: { revision: string; operations: readonly Operation[] }): string {
  if (operations.length === 0) return `nothing to change at ${short(revision)}\n`;
  const rows = operations.map(({ site, status, steps, reason }) => [
    site,
    styleText(status === 'succeeded' ? 'green' : 'red', status),
    `${steps.filter((step) => step.status === 'succeeded').length} of ${counted(steps.length, 'step')}`,
    reason ?? '',
  ]);
  return table([header('site', 'outcome', 'steps', ''), ...rows]);
}
