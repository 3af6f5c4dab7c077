import { Command, CommanderError } from 'commander';
import { type ConformEnv, secretsOf } from './env.ts';
import { exitCodeOf, redactor, renderEnd, renderHeading, renderRow, reportJson } from './report.ts';
import { runTable, type TableReport, type TableRun } from './table.ts';
import { cloudflareTable } from './targets/cloudflare.ts';
import { googleTable } from './targets/google.ts';
import { tagServerTable } from './targets/tag-server.ts';

interface Options {
  readonly image?: string;
  /** `true`: the real one. */
  readonly cloudflare?: string | true;
  readonly google?: string | true;
  readonly gateway?: string;
  readonly json?: true;
}

const HELP = `
Exit code 0: all same; never with --cloudflare, because a full zone and the limit of calls are never tried.
1: something differs, or could not be removed. 3: nothing differs, but something was not tried.
2: the command line is wrong. 130: a second signal ended it at once, and something may remain.
docs/conformance.md says what each option needs and costs.`;

/** Reads the command line. Throws commander's error, after it has printed what is wrong. */
function parseOptions(argv: readonly string[]): Options {
  const command = new Command('npm run conform --')
    .description('Checks whether the real systems behave like the stand-ins that the tests use.')
    .option('--image <reference>', 'an image of the tag server: pulled, and run by this machine’s Docker')
    .option(
      '--cloudflare [address]',
      'Cloudflare’s API, on the zone CLOUDFLARE_ZONE_ID; or the API at an address',
    )
    .option('--google [address]', 'Google’s scripts and tag gateway; or the scripts at an address')
    .option('--gateway <address>', 'for --google: the tag gateway at an address')
    .option('--json', 'print the outcome as JSON, at the end')
    .addHelpText('after', HELP)
    .allowExcessArguments(false)
    .showHelpAfterError()
    .exitOverride();
  command.parse([...argv], { from: 'user' });
  const options = command.opts<Options>();
  if (options.image === undefined && options.cloudflare === undefined && options.google === undefined) {
    command.error('error: name what to try: --image, --cloudflare, --google, or several of them');
  }
  return options;
}

interface Io {
  readonly env: ConformEnv;
  /** When it aborts, the run ends early and removes what it made. */
  readonly signal: AbortSignal;
  readonly write: (text: string) => void;
}

/** Tries what the command line names, and returns the exit code. */
export async function conform(argv: readonly string[], { env, signal, write }: Io): Promise<number> {
  let options: Options;
  try {
    options = parseOptions(argv);
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const redact = redactor(secretsOf(env));
  const show = (text: string) => options.json !== true && write(redact(text));
  const run: TableRun = {
    signal,
    onOpen: (table, subject) => show(renderHeading(table, subject)),
    onRow: (row) => show(renderRow(row)),
  };

  const reports: TableReport[] = [];
  const add = (report: TableReport) => {
    reports.push(report);
    show(renderEnd(report));
  };
  const addressOf = (given: string | true) => (given === true ? null : given);
  if (options.image !== undefined) add(await runTable(tagServerTable(options.image, env), run));
  if (options.cloudflare !== undefined) {
    add(await runTable(cloudflareTable(addressOf(options.cloudflare), env), run));
  }
  if (options.google !== undefined) {
    const addresses = { scripts: addressOf(options.google), gateway: options.gateway ?? null };
    add(await runTable(googleTable(addresses, env), run));
  }
  if (options.json === true) write(`${JSON.stringify(reportJson(reports, redact), null, 2)}\n`);
  return exitCodeOf(reports);
}
