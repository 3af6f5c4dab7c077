import { replaceHidden } from '../../../base/text.ts';

/** Author or committer of a commit. */
export interface Person {
  readonly name: string;
  readonly email: string;
}

/** Who commits, besides a commit's author. */
export interface CommitSettings {
  readonly committer: Person;
  /** The file of the SSH key that signs; `undefined`: commits aren't signed. */
  readonly signingKey: string | undefined;
}

/** One commit that writes one file of the tree; with the text `null`, it deletes the file. */
export interface FileCommit {
  readonly path: string;
  readonly text: string | null;
  readonly subject: string;
  readonly author: Person;
  /** `Site:`, `Actor:`, `Request-Id:`, `Reason:`, `Reverts:`; `git interpret-trailers` reads them back. */
  readonly trailers: Readonly<Record<string, string>>;
}

export const COMMITTER: Person = { name: 'Tagyard', email: 'tagyard@localhost' };

/**
 * A `git fast-import` stream that makes these commits on top of `parent`, in order, and moves `ref` to the last one.
 * fast-import refuses to move a ref to a commit that doesn't contain the old one, and prints one commit id per line.
 * Source: git-fast-import(1).
 */
export function fastImportStream(
  ref: string,
  parent: string | null,
  commits: readonly FileCommit[],
  seconds: number,
  committer: Person = COMMITTER,
): Buffer {
  const parts = commits.flatMap((commit, index) => [
    // The first commit has no parent. If `ref` exists after all, fast-import refuses to move it.
    index === 0 && parent === null ? `reset ${ref}\n` : '',
    `commit ${ref}\nmark :${index + 1}\n`,
    `author ${person(commit.author)} ${seconds} +0000\ncommitter ${person(committer)} ${seconds} +0000\n`,
    data(commitMessageOf(commit)),
    index === 0 && parent !== null ? `from ${parent}\n` : '',
    commit.text === null
      ? `D ${quote(commit.path)}\n`
      : `M 100644 inline ${quote(commit.path)}\n${data(commit.text)}`,
    '\n',
  ]);
  const marks = commits.map((_, index) => `get-mark :${index + 1}\n`);
  return Buffer.from(`${parts.join('')}${marks.join('')}done\n`);
}

/** The whole message of a commit. */
export function commitMessageOf({ subject, trailers }: FileCommit): string {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${oneLine(value)}`);
  return `${oneLine(subject)}\n\n${lines.join('\n')}\n`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

function person(given: Person): string {
  const { name, email } = identityOf(given);
  return `${name} <${email}>`;
}

/**
 * Names and trailers are input: no character of them may end a line or an address. `git commit-tree` refuses a name of
 * punctuation only.
 */
export function identityOf({ name, email }: Person): Person {
  const text = oneLine(name).replace(/[<>]/g, '');
  return {
    name: /[^\s.,:;"\\']/.test(text) ? text : 'unknown',
    email: oneLine(email).replace(/[<>\s]/g, ''),
  };
}

function oneLine(text: string): string {
  return replaceHidden(text).trim();
}

function quote(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;
}
