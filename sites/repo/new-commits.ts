import { randomUUID } from 'node:crypto';
import { commitMessageOf, type FileCommit, fastImportStream, identityOf } from './edits/fast-import.ts';
import type { GitDir } from './git-dir.ts';

/** A chain of commits on top of `parent`. */
interface NewCommits {
  readonly parent: string | null;
  readonly commits: readonly FileCommit[];
  /** Unix time. */
  readonly seconds: number;
}

/**
 * Makes commits, in order, and returns their ids. In a mirror, `unpushed` then leads to them. Else `ref` does, and this
 * fails if `ref` was not at `parent` any more.
 */
export async function makeCommits(
  git: GitDir,
  { ref, unpushed }: { readonly ref: string; readonly unpushed: string },
  made: NewCommits,
): Promise<readonly string[]> {
  if (git.isMirror) return await signed(git, made, await imported(git, unpushed, made, ['--force']));
  if (git.commits.signingKey === undefined) return await imported(git, ref, made);
  // Several processes may write to the same repository, so that each needs a ref of its own.
  const unsigned = `${unpushed}-${randomUUID()}`;
  try {
    const revisions = await signed(git, made, await imported(git, unsigned, made));
    // An empty old value: the ref must not exist.
    await git.run(['update-ref', ref, revisions.at(-1) ?? '', made.parent ?? '']);
    return revisions;
  } finally {
    await git.run(['update-ref', '-d', unsigned]);
  }
}

async function imported(
  git: GitDir,
  ref: string,
  { parent, commits, seconds }: NewCommits,
  options: readonly string[] = [],
): Promise<string[]> {
  const stream = fastImportStream(ref, parent, commits, seconds, git.commits.committer);
  const output = await git.run(['fast-import', '--quiet', '--done', ...options], stream);
  return output.toString().trim().split('\n');
}

/** fast-import can't sign. So each commit is made again, with the same tree. */
async function signed(
  git: GitDir,
  { parent, commits, seconds }: NewCommits,
  revisions: readonly string[],
): Promise<readonly string[]> {
  const { committer, signingKey } = git.commits;
  if (signingKey === undefined) return revisions;
  const settings = ['-c', 'gpg.format=ssh', '-c', `user.signingKey=${signingKey}`];
  const made: string[] = [];
  for (const [index, commit] of commits.entries()) {
    const last = made.at(-1) ?? parent;
    const [author, by] = [identityOf(commit.author), identityOf(committer)];
    const date = `@${seconds} +0000`;
    const output = await git.run(
      [
        ...settings,
        'commit-tree',
        '-S',
        ...(last === null ? [] : ['-p', last]),
        `${revisions[index]}^{tree}`,
      ],
      commitMessageOf(commit),
      {
        env: {
          GIT_AUTHOR_NAME: author.name,
          GIT_AUTHOR_EMAIL: author.email,
          GIT_AUTHOR_DATE: date,
          GIT_COMMITTER_NAME: by.name,
          GIT_COMMITTER_EMAIL: by.email,
          GIT_COMMITTER_DATE: date,
        },
      },
    );
    made.push(output.toString().trim());
  }
  return made;
}
