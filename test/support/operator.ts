import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';

const IDENTITY = ['-c', 'user.name=Operator', '-c', 'user.email=operator@example.net'];

/** A person with a clone of the sites repository and nothing but plain git. */
export interface Operator extends Disposable {
  /** `git log --format=…` of a site's file, newest first. */
  log(site: string, format: string): Promise<string[]>;
  /** `git revert` of a commit, pushed; returns the new revision. */
  revert(revision: string): Promise<string>;
  /** Edits a site's file by hand, commits and pushes. */
  edit(site: string, change: (text: string) => string): Promise<string>;
  read(site: string): Promise<string>;
  /** The folder of the clone. */
  readonly clone: string;
  /** Runs git in the clone. Call `refresh` first to update the clone from the remote. */
  git(...args: string[]): Promise<string>;
  refresh(): Promise<string>;
  /** Commits everything in the clone and pushes it. Resolves to the new revision. */
  publishAll(subject: string): Promise<string>;
}

export async function operator(sitesRepo: string): Promise<Operator> {
  const clone = mkdtempSync(join(tmpdir(), 'tagyard-operator-'));
  const git = async (...args: string[]) =>
    (await execa('git', [...IDENTITY, ...args], { cwd: clone })).stdout;
  await git('clone', '--quiet', sitesRepo, '.');
  const publish = async () => {
    await git('push', '--quiet', 'origin', 'HEAD');
    return await git('rev-parse', 'HEAD');
  };
  const refresh = () => git('pull', '--quiet', '--ff-only');
  return {
    clone,
    git,
    refresh,
    async publishAll(subject) {
      await git('add', '--all');
      await git('commit', '--quiet', '--message', subject);
      return await publish();
    },
    async log(site, format) {
      await refresh();
      const text = await git('log', `--format=${format}`, '--', `${site}.yaml`);
      return text.split('\n').filter((line) => line !== '');
    },
    async revert(revision) {
      await refresh();
      await git('revert', '--no-edit', revision);
      return await publish();
    },
    async edit(site, change) {
      await refresh();
      const file = join(clone, `${site}.yaml`);
      writeFileSync(file, change(readFileSync(file, 'utf8')));
      await git('commit', '--quiet', '--all', '--message', `Edit ${site} by hand`);
      return await publish();
    },
    async read(site) {
      await refresh();
      return readFileSync(join(clone, `${site}.yaml`), 'utf8');
    },
    [Symbol.dispose]: () => rmSync(clone, { recursive: true, force: true }),
  };
}
