import { readFile, rm } from 'node:fs/promises';
import { writeDurably } from '../../../base/durable.ts';
import { CliError } from '../output/cli-error.ts';
import { type Run, runSchema } from './run-schema.ts';

export async function writeRun(path: string, run: Run): Promise<void> {
  await writeDurably(path, `${JSON.stringify(run, null, 2)}\n`);
}

export async function removeRun(path: string): Promise<void> {
  await rm(path, { force: true });
}

/** Throws `CliError` if the run file is missing or damaged. */
export async function readRun(path: string): Promise<Run> {
  try {
    return runSchema.parse(JSON.parse(await readFile(path, 'utf8')));
  } catch (cause) {
    throw new CliError(
      `no instance runs here (${path} is missing or damaged); run npm start, or set TAGYARD_HOME; on a host, name the provisioner's settings: tagyard --env-file <file> …, or INFRA_PROVISIONER_URL and INFRA_SECRET`,
      { cause },
    );
  }
}
