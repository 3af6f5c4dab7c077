import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { parseManifest } from '../manifest/load.ts';
import { type Output, print } from './output/print.ts';

interface Fault {
  readonly file: string;
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

/** Checks manifests without any daemon, as it would; a line a fault, `file:line: path: message`. Exit code 1 with any. */
export async function validate(files: readonly string[], options: Output): Promise<void> {
  const faults = (await Promise.all(files.map(faultsOf))).flat();
  print(options, faults, () =>
    faults
      .map(({ file, line, path, message }) => {
        const where = line === null ? file : `${file}:${line}`;
        return `${where}: ${path === '' ? '' : `${path}: `}${message}\n`;
      })
      .join(''),
  );
  if (faults.length > 0) process.exitCode = 1;
}

async function faultsOf(file: string): Promise<Fault[]> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    return [{ file, line: null, path: '', message: error instanceof Error ? error.message : String(error) }];
  }
  const parsed = parseManifest(text, basename(file));
  if (parsed.ok) return [];
  return parsed.problems.map(({ path, message, line }) => ({ file, line: line ?? null, path, message }));
}
