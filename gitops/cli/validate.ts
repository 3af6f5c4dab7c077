import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { counted, escapeHiddenIn } from '../../base/text.ts';
import { parseManifest } from '../../sites/manifest/load.ts';
import { describeProblem } from '../../sites/manifest/problem.ts';
import type { Manifest } from '../../sites/manifest/schema.ts';
import { claims } from '../desired/claims.ts';
import { disputedDomains } from '../desired/client-domains.ts';
import { type OutputOptions, print } from './output/print.ts';

interface Problem {
  readonly file: string;
  readonly line: number | null;
  readonly path: string;
  readonly message: string;
}

/**
 * Checks manifests without a provisioner. Also checks that no two of them claim the same name, port or token, and that
 * no two clients claim the same domain. Prints one line per problem: `file:line: path: message`. Exit code 1 if there
 * is one; a warning doesn't count.
 */
export async function validate(files: readonly string[], options: OutputOptions): Promise<void> {
  const { problems } = await checkFiles(files);
  print(options, problems, (shown) =>
    shown.length === 0
      ? `${counted(files.length, 'file is valid', 'files are valid')}\n`
      : shown.map((problem) => `${describeProblem(problem.file, problem)}\n`).join(''),
  );
  if (problems.length > 0) process.exitCode = 1;
}

/** The problems of these manifests, alone and with each other, and the manifests that are valid alone. */
export async function checkFiles(files: readonly string[]) {
  const checked = await Promise.all(files.map(check));
  const own = checked.flatMap(({ problems }) => problems);
  const valid = checked.flatMap(({ file, manifest }) => (manifest === null ? [] : [{ file, manifest }]));
  return {
    problems: escapeHiddenIn([...own, ...conflicts(valid)]),
    manifests: valid.map(({ manifest }) => manifest),
  };
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
    for (const { path, message, line } of escapeHiddenIn(parsed.warnings)) {
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

/**
 * Finds what the provisioner would refuse as `NameTaken`. Ports are unique per host, everything else on all hosts, and
 * a registrable domain belongs to one client. The files don't say which claim is older, so the claim of the first file wins.
 */
function conflicts(valid: readonly Valid[]): Problem[] {
  const live = new Map<string, Valid>();
  for (const one of valid) {
    // A file that is given twice, or two versions of one site, don't conflict with each other.
    if (one.manifest.state === 'present') live.set(one.manifest.site, live.get(one.manifest.site) ?? one);
  }
  const disputed = disputedDomains([...live.values()].map(({ manifest }) => manifest));
  const holders = new Map<string, string>();
  const owners = new Map<string, Valid>();
  return [...live.values()].flatMap((one) => {
    const { file, manifest } = one;
    const messages: string[] = [];
    for (const name of new Set(claims(manifest))) {
      const scope = name.startsWith('port ') ? ` on ${manifest.host}` : '';
      const holder = holders.get(name + scope);
      if (holder === undefined) holders.set(name + scope, file);
      else messages.push(`${name} is also claimed by ${holder}`);
    }
    for (const domain of disputed.get(manifest.site) ?? []) {
      const owner = owners.get(domain) ?? one;
      owners.set(domain, owner);
      if (owner.manifest.client !== manifest.client) {
        messages.push(`${domain} belongs to another client, whose site is in ${owner.file}`);
      }
    }
    return messages.map((message) => ({ file, line: null, path: '', message }));
  });
}
