import { replaceHidden } from '../../../base/text.ts';

/** Author or committer of a commit. */
interface Person {
  readonly name: string;
  readonly email: string;
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

const COMMITTER: Person = { name: 'Tagyard', email: 'tagyard@localhost' };

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
): Buffer {
  const parts = commits.flatMap((commit, index) => [
    // The first commit has no parent. If `ref` exists after all, fast-import refuses to move it.
    index === 0 && parent === null ? `reset ${ref}\n` : '',
    `commit ${ref}\nmark :${index + 1}\n`,
    `author ${person(commit.author)} ${seconds} +0000\ncommitter ${person(COMMITTER)} ${seconds} +0000\n`,
    data(message(commit)),
    index === 0 && parent !== null ? `from ${parent}\n` : '',
    commit.text === null
      ? `D ${quote(commit.path)}\n`
      : `M 100644 inline ${quote(commit.path)}\n${data(commit.text)}`,
    '\n',
  ]);
  const marks = commits.map((_, index) => `get-mark :${index + 1}\n`);
  return Buffer.from(`${parts.join('')}${marks.join('')}done\n`);
}

function message({ subject, trailers }: FileCommit): string {
  const lines = Object.entries(trailers).map(([name, value]) => `${name}: ${oneLine(value)}`);
  return `${oneLine(subject)}\n\n${lines.join('\n')}\n`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

/** Names and trailers are input: no character of them may end a line or an address. */
function person({ name, email }: Person): string {
  return `${oneLine(name).replace(/[<>]/g, '') || 'unknown'} <${oneLine(email).replace(/[<>\s]/g, '')}>`;
}

function oneLine(text: string): string {
  return replaceHidden(text).trim();
}

function quote(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&').replace(/\n/g, '\\n')}"`;
}
