import { setTimeout as pause } from 'node:timers/promises';
import { styleText } from 'node:util';
import { applyAnswerSchema, type Operation, operationSchema } from '../report/report.ts';
import { callProvisioner, type Where } from './instance/provisioner-client.ts';
import { header, type Output, print, progress, short } from './output/print.ts';
import { table } from './output/table.ts';

/** How often an operation is asked for. */
const POLL_MS = 250;

/**
 * Applies the newest revision and waits for the end of it; with a checksum only if the plan is still that one. Exit
 * code 1 where a site failed.
 */
export async function apply(where: Where, options: Output & { checksum?: string }): Promise<void> {
  const body = options.checksum === undefined ? {} : { checksum: options.checksum };
  const asked = applyAnswerSchema.parse(await callProvisioner(where, 'POST', '/apply', body));
  const line = progress();
  const done = new Map<string, Operation>();
  const show = (site: string) =>
    line.show(`applying ${short(asked.revision)}: ${done.size} of ${asked.operations.length} sites, ${site}`);
  for (const { site, url } of asked.operations) {
    for (;;) {
      show(site);
      const operation = operationSchema.parse(await callProvisioner(where, 'GET', url));
      if (operation.finishedAt !== null) {
        done.set(site, operation);
        break;
      }
      await pause(POLL_MS);
    }
  }
  line.clear();
  const operations = [...done.values()];
  print(options, { revision: asked.revision, operations }, render);
  if (operations.some(({ status }) => status !== 'succeeded')) process.exitCode = 1;
}

function render({ revision, operations }: { revision: string; operations: readonly Operation[] }): string {
  if (operations.length === 0) return `nothing to change at ${short(revision)}\n`;
  const rows = operations.map(({ site, status, steps, reason }) => [
    site,
    styleText(status === 'succeeded' ? 'green' : 'red', status),
    `${steps.filter((step) => step.status === 'succeeded').length} of ${steps.length} steps`,
    reason ?? '',
  ]);
  return table([header('site', 'outcome', 'steps', ''), ...rows]);
}
