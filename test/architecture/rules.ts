import { posix } from 'node:path';
import { descend, importsOf, lineOf, type Node, parse, type SourceFile } from './source.ts';

/** Each rule returns one line per violation, `path: what is wrong`. If there are no lines, the rule is kept. */
export type Violations = string[];

/**
 * Who may import whom, as globs over paths (packages: `npm/…`, Node's modules: `node/…`). The first row whose `from`
 * matches a file applies to it. `<own>` is the path of the file's first folders, as many as `from` has.
 */
export interface Row {
  readonly from: string;
  readonly may: readonly string[];
  /** What may also be imported, but as types only. */
  readonly types?: readonly string[];
  /** Takes precedence over `may`. */
  readonly never?: readonly string[];
  /** Why this row is wider than its neighbours. */
  readonly because?: string;
}

export function imports(files: readonly SourceFile[], matrix: readonly Row[]): Violations {
  return files.flatMap((file) => {
    const row = matrix.find(({ from }) => posix.matchesGlob(file.path, from));
    if (row === undefined) return [`${file.path}: no row of the matrix says what it may import`];
    const own = file.path
      .split('/')
      .slice(0, row.from.split('/').length - 1)
      .join('/');
    const matches = (target: string, patterns: readonly string[] = []) =>
      patterns.some((pattern) => posix.matchesGlob(target, pattern.replace('<own>', own)));
    return importsOf(file)
      .filter(
        ({ target, typeOnly }) =>
          matches(target, row.never) ||
          !(matches(target, row.may) || (typeOnly && matches(target, row.types))),
      )
      .map(({ target, typeOnly }) => `${file.path}: imports ${typeOnly ? 'a type of ' : ''}${target}`);
  });
}

/** Lines that are comments only. The formatter wraps code, but no comment. */
export function wideComments(files: readonly SourceFile[], most: number): Violations {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        /^\s*(?:\/\/|\/?\*)/.test(line) && line.length > most
          ? [`${path}:${index + 1}: a comment of ${line.length} characters, more than ${most}`]
          : [],
      ),
  );
}

/** Planners and renderers are pure functions of their data: no clock, no random numbers, no environment. */
export function purity(files: readonly SourceFile[]): Violations {
  return files.flatMap((file) =>
    parse(file)
      .filter((node) => isImpure(file, node))
      .map((node) => `${file.path}:${lineOf(file, node)}: ${snippet(file, node)} is not pure`),
  );
}

function isImpure(file: SourceFile, node: Node): boolean {
  const code = snippet(file, node);
  if (node.type === 'MemberExpression') {
    return ['Date.now', 'Math.random', 'process.env', 'performance.now'].includes(code);
  }
  return node.type === 'NewExpression' && code === 'new Date()';
}

function snippet({ text }: SourceFile, node: Node): string {
  return text.slice(node.start, typeof node.end === 'number' ? node.end : undefined);
}

/**
 * Pauses of fixed length: promises whose `resolve` a timer calls, or the timers of `node:timers/promises`. A timer that
 * *rejects* is allowed as a deadline, and a timer by which a fake server answers late is that server's behaviour.
 */
export function sleeps(files: readonly SourceFile[]): Violations {
  return files.flatMap((file) =>
    parse(file)
      .filter((node) => isSleep(node) || isTimersImport(node))
      .map((node) => `${file.path}:${lineOf(file, node)}: sleeps; poll with eventually() instead`),
  );
}

function isTimersImport(node: Node): boolean {
  return node.type === 'ImportDeclaration' && (node.source as Node).value === 'node:timers/promises'; // ESTree: a Literal
}

function isSleep(node: Node): boolean {
  if (node.type !== 'NewExpression' || nameOf(node.callee) !== 'Promise') return false;
  const [executor] = children(node.arguments);
  if (executor === undefined) return false;
  const resolve = nameOf(children(executor.params)[0]);
  return descend(executor).some((call) => {
    if (call.type !== 'CallExpression' || nameOf(call.callee) !== 'setTimeout') return false;
    const [callback] = children(call.arguments);
    return (
      callback !== undefined &&
      descend(callback).some((inner) => resolve !== undefined && nameOf(inner) === resolve)
    );
  });
}

function children(member: unknown): Node[] {
  return Array.isArray(member) ? (member as Node[]) : []; // ESTree: lists of nodes
}

function nameOf(node: unknown): string | undefined {
  const { type, name } = (node ?? {}) as Partial<Node>; // read only where it is an Identifier
  return type === 'Identifier' && typeof name === 'string' ? name : undefined;
}

/** Folders that exist on one machine only; `/usr`, `/etc`, `/var` and `/tmp` exist on every machine. */
const MACHINE_PATH = /(?<![\w.$}*)\]-])\/(?:work|root|Users|home\/[a-z]\w*)\/[\w.-]+/;

export function machinePaths(files: readonly SourceFile[]): Violations {
  return files.flatMap(({ path, text }) =>
    text.split('\n').flatMap((line, index) => {
      const found = MACHINE_PATH.exec(line);
      return found === null ? [] : [`${path}:${index + 1}: names ${found[0]}`];
    }),
  );
}

/** The README shows every error code of a service (a closed set), in backquotes. */
export function undocumented(codes: readonly string[], readme: string): Violations {
  return codes
    .filter((code) => !readme.includes(`\`${code}\``))
    .map((code) => `README.md: \`${code}\` is missing`);
}

/** `process.kill` and the commands that send signals: a wrong pid (0, negative) ends processes that the tests never started. */
const SIGNALLING = /\bprocess\s*\.\s*kill\s*\(|(['"`])(?:kill|pkill|killall)\1/;

/** A test signals a process only through the helper that checks the pid first. */
export function signals(files: readonly SourceFile[]): Violations {
  return files.flatMap(({ path, text }) =>
    text
      .split('\n')
      .flatMap((line, index) =>
        SIGNALLING.test(line) ? [`${path}:${index + 1}: signals a process; use test/support/signal.ts`] : [],
      ),
  );
}
