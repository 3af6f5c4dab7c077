import { mkdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { parseEnv } from 'node:util';
import { writeDurably } from '../../../base/durable.ts';
import { ask } from '../output/ask.ts';

export type Agreement = (question: string) => Promise<boolean>;

/** On a terminal, a person confirms each step. Without one, `yes` must be given. */
export function confirmation(yes: boolean): Agreement {
  return async (question) => yes || /^y(es)?$/i.test((await ask(`${question} [y/N] `)) ?? '');
}

/** The text of a file; `null`: there is none. */
export async function textOf(path: string): Promise<string | null> {
  return await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw error;
  });
}

/** The settings in a file, if there is one. */
export async function settingsAt(path: string): Promise<Readonly<Record<string, string | undefined>>> {
  return parseEnv((await textOf(path)) ?? '');
}

/**
 * Writes a file that is missing. One that differs is a person's work: its difference is shown, and it stays unless `replace`
 * agrees. A file of settings that has each wanted value is as wanted, whatever else it has.
 */
export async function placeFile(
  path: string,
  wanted: string,
  { mode = 0o600, replace }: { readonly mode?: number; readonly replace: Agreement },
): Promise<void> {
  const there = await textOf(path);
  if (there !== null && (there === wanted || (path.endsWith('.env') && hasAll(there, wanted)))) {
    process.stdout.write(`${path} is as it should be\n`);
    return;
  }
  if (there !== null) {
    process.stdout.write(`${path} differs from what would be written:\n${difference(there, wanted)}`);
    if (!(await replace(`Replace ${path}?`))) {
      process.stdout.write(`${path} stays as it is\n`);
      return;
    }
  }
  await mkdir(dirname(path), { recursive: true });
  await writeDurably(path, wanted, mode);
  process.stdout.write(`${path} ${there === null ? 'is written' : 'is replaced'}\n`);
}

function hasAll(there: string, wanted: string): boolean {
  const values = parseEnv(there);
  return Object.entries(parseEnv(wanted)).every(([name, value]) => values[name] === value);
}

/** The lines that only one of the texts has. Values that may be secret are not shown. */
function difference(there: string, wanted: string): string {
  const [old, next] = [there, wanted].map((text) => new Set(text.split('\n')));
  const shown = (line: string) =>
    line.replace(/((?:SECRET|TOKEN|KEY|_URL|SITES_REPO|password)\w*[= ]).*/, (_, name: string) => `${name}…`);
  const linesOf = (lines: Iterable<string>, others: ReadonlySet<string> | undefined, sign: string) =>
    [...lines].filter((line) => !others?.has(line)).map((line) => `  ${sign} ${shown(line)}\n`);
  return [...linesOf(old ?? [], next, '-'), ...linesOf(next ?? [], old, '+')].join('');
}
