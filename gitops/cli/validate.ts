import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseManifest } from '../manifest/load.ts';
import { type OutputOptions, print } from './output/print.ts';

interface Problem {
  readonly file: string;
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

/** Checks manifests without a provisioner. Prints one line per problem: `file:line: path: message`. Exit code 1 if there is one; a warning doesn't count. */
export async function validate(files: readonly string[], options: OutputOptions): Promise<void> {
  const problems = (await Promise.all(files.map(problemsIn))).flat();
  print(options, problems, () =>
    problems
      .map(({ file, line, path, message }) => {
        const position = line === null ? file : `${file}:${line}`;
        return `${position}: ${path === '' ? '' : `${path}: `}${message}\n`;
      })
      .join(''),
  );
  if (problems.length > 0) process.exitCode = 1;
}

async function problemsIn(file: string): Promise<Problem[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    return [{ file, line: null, path: '', message: error instanceof Error ? error.message : String(error) }];
  }
  const parsed = parseManifest(text, basename(file));
  if (parsed.ok) {
    for (const { path, message, line } of parsed.warnings) {
      process.stderr.write(`${line === undefined ? file : `${file}:${line}`}: warning: ${path} ${message}\n`);
    }
    return [];
  }
  return parsed.problems.map(({ path, message, line }) => ({ file, line: line ?? null, path, message }));
}
