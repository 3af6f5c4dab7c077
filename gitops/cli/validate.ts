import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { visibleTexts } from '../base/visible.ts';
import { claims } from '../desired/claims.ts';
import { parseManifest } from '../manifest/load.ts';
import type { Manifest } from '../manifest/schema.ts';
import { type OutputOptions, print } from './output/print.ts';

interface Problem {
  readonly file: string;
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

/**
 * Checks manifests without a provisioner, and that no two of them claim the same name, port or token. Prints one line
 * per problem: `file:line: path: message`. Exit code 1 if there is one; a warning doesn't count.
 */
export async function validate(files: readonly string[], options: OutputOptions): Promise<void> {
  const checked = await Promise.all(files.map(check));
  const own = checked.flatMap(({ problems }) => problems);
  const valid = checked.flatMap(({ file, manifest }) => (manifest === null ? [] : [{ file, manifest }]));
  const problems = visibleTexts([...own, ...conflicts(valid)]);
  print(options, problems, (shown) =>
    shown
      .map(({ file, line, path, message }) => {
        const position = line === null ? file : `${file}:${line}`;
        return `${position}: ${path === '' ? '' : `${path}: `}${message}\n`;
      })
      .join(''),
  );
  if (problems.length > 0) process.exitCode = 1;
}

interface Checked {
  readonly file: string;
  /** `null`: it is invalid. */
  readonly manifest: Manifest | null;
  readonly problems: readonly Problem[];
}

async function check(file: string): Promise<Checked> {
  let text: string;
  try {
    text = await readFile(file, 'utf8');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { file, manifest: null, problems: [{ file, line: null, path: '', message }] };
  }
  const parsed = parseManifest(text, basename(file));
  if (parsed.ok) {
    for (const { path, message, line } of visibleTexts(parsed.warnings)) {
      process.stderr.write(`${line === undefined ? file : `${file}:${line}`}: warning: ${path} ${message}\n`);
    }
    return { file, manifest: parsed.manifest, problems: [] };
  }
  const problems = parsed.problems.map(({ path, message, line }) => ({
    file,
    line: line ?? null,
    path,
    message,
  }));
  return { file, manifest: null, problems };
}

type Valid = { readonly file: string; readonly manifest: Manifest };

/** Finds what the provisioner would refuse as `NameTaken`. Ports are unique per host, everything else on all hosts. */
function conflicts(valid: readonly Valid[]): Problem[] {
  const holders = new Map<string, string>();
  const live = new Map<string, Valid>();
  for (const one of valid) {
    // A file that is given twice, or two versions of one site, don't conflict with each other.
    if (one.manifest.state === 'present') live.set(one.manifest.site, live.get(one.manifest.site) ?? one);
  }
  return [...live.values()].flatMap(({ file, manifest }) => {
    const problems: Problem[] = [];
    for (const name of new Set(claims(manifest))) {
      const scope = name.startsWith('port ') ? ` on ${manifest.host}` : '';
      const holder = holders.get(name + scope);
      if (holder === undefined) holders.set(name + scope, file);
      else problems.push({ file, line: null, path: '', message: `${name} is also claimed by ${holder}` });
    }
    return problems;
  });
}
