import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const ROOT = resolve(import.meta.dirname, '../../..');

/** Whether git has the commit: a shallow clone or an archive doesn't. */
export function hasCommit(commit: string): boolean {
  try {
    execFileSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT, stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** The edge of an earlier commit in a folder of its own, with this version's libraries. */
export function earlierVersion(commit: string, paths: readonly string[]): { folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'tagyard-earlier-'));
  const archive = execFileSync('git', ['archive', commit, ...paths], {
    cwd: ROOT,
    maxBuffer: 64 * 1_048_576,
  });
  execFileSync('tar', ['-x', '-C', folder], { input: archive });
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}
