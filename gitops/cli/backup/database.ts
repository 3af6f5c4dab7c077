import { fileURLToPath } from 'node:url';
import { ExecaError, execa } from 'execa';
import { siblingUrl } from '../../../base/runtime/sibling.ts';
import { CliError } from '../output/cli-error.ts';
import { type VersionOfCopy, versionOfCopy } from './about.ts';

/** Gives each batch of rows to `put`. Throws `CliError`. */
export async function readDatabase(
  database: string,
  put: (rows: string) => Promise<void>,
): Promise<VersionOfCopy> {
  let last: string | null = null;
  try {
    for await (const line of copying([JSON.stringify({ database, version: null })])) {
      if (last !== null) await put(last);
      last = line;
    }
  } catch (cause) {
    throw refusal('the database can’t be read', cause);
  }
  return versionOfCopy.parse(JSON.parse(last ?? ''));
}

/** Fills an empty database. Throws `CliError`, and then has left it as it was. */
export async function fillDatabase(
  database: string,
  version: VersionOfCopy,
  rows: AsyncIterable<string>,
): Promise<void> {
  async function* input() {
    yield JSON.stringify({ database, version });
    yield* rows;
    // Without it, the end of this process would look like the end of the rows.
    yield '';
  }
  try {
    await copying(input());
  } catch (cause) {
    throw refusal('the database was not restored', cause);
  }
}

/** Management's own code copies its database, in a process of its own: this program loads none of it. */
function copying(input: Iterable<string> | AsyncIterable<string>) {
  const script = fileURLToPath(siblingUrl('../../../management/main', import.meta.url));
  async function* lines() {
    for await (const line of input) yield `${line}\n`;
  }
  return execa(process.execPath, ['--disable-warning=ExperimentalWarning', script, 'copy'], {
    stdin: lines(),
    buffer: { stdout: false },
  });
}

function refusal(what: string, cause: unknown): CliError {
  if (cause instanceof CliError) return cause;
  if (!(cause instanceof ExecaError)) throw cause;
  if (cause.cause instanceof CliError) return cause.cause;
  const [reason = ''] = String(cause.stderr || cause.shortMessage)
    .trim()
    .split('\n')
    .slice(-1);
  return new CliError(`${what}: ${reason.replace(/^management: /, '')}`, { cause });
}
