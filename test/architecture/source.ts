import { posix } from 'node:path';
import { parseAst } from 'vitest/node';

/** A file of the tree; `path` is relative to the project's root, with `/`. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

/** A node of the tree that the parser returns: ESTree with TypeScript's nodes. */
export interface Node {
  readonly type: string;
  readonly start: number;
  readonly [member: string]: unknown;
}

/** What a file imports: another file's path, `node/…`, `cloudflare/…` or `npm/…`; type-only imports count too. */
interface Import {
  readonly target: string;
  readonly typeOnly: boolean;
}

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string';
}

/** The parsed files, so that each file is parsed once for all rules. */
const PARSED = new WeakMap<SourceFile, Node[]>();

/** All nodes of a file, outer before inner. Throws if the file doesn't parse. */
export function parse(file: SourceFile): Node[] {
  const known = PARSED.get(file);
  if (known !== undefined) return known;
  const program: unknown = parseAst(file.text, { lang: file.path.endsWith('x') ? 'tsx' : 'ts' }, file.path);
  if (!isNode(program)) throw new TypeError(`${file.path}: the parser returned no program`);
  const nodes = descend(program);
  PARSED.set(file, nodes);
  return nodes;
}

/** A node and all nodes inside it. */
export function descend(node: Node): Node[] {
  const all: Node[] = [];
  const visit = (one: Node): void => {
    all.push(one);
    for (const key in one) {
      const member = one[key];
      if (typeof member !== 'object' || member === null) continue;
      if (!Array.isArray(member)) {
        if (isNode(member)) visit(member);
      } else for (const inner of member) if (isNode(inner)) visit(inner);
    }
  };
  visit(node);
  return all;
}

/** The line of a node in its file, from 1. */
export function lineOf({ text }: SourceFile, { start }: Node): number {
  return text.slice(0, start).split('\n').length;
}

/** Static, dynamic and type imports (`import type`, `import('…').T`) and re-exports. */
export function importsOf(file: SourceFile): Import[] {
  return parse(file).flatMap((node) => {
    const target = importTarget(file.path, node);
    return target === null ? [] : [{ target, typeOnly: isTypeOnly(node) }];
  });
}

/** What a node imports, in the form of `Import.target`; `null` if it isn't an import. */
export function importTarget(path: string, node: Node): string | null {
  const specifier = isNode(node.source) ? node.source.value : undefined;
  return IMPORTING.has(node.type) && typeof specifier === 'string' ? resolve(path, specifier) : null;
}

const IMPORTING: ReadonlySet<string> = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
]);

function isTypeOnly(node: Node): boolean {
  if (node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type') return true;
  const specifiers = Array.isArray(node.specifiers) ? node.specifiers.filter(isNode) : [];
  return (
    specifiers.length > 0 &&
    specifiers.every(({ importKind, exportKind }) => importKind === 'type' || exportKind === 'type')
  );
}

/** `node:fs` is `node/fs`, `cloudflare:workers` is `cloudflare/workers`; any other bare name is a package. */
function resolve(from: string, specifier: string): string {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(from), specifier);
  const [, runtime, module] = /^(node|cloudflare):(.+)$/.exec(specifier) ?? [];
  return runtime === undefined ? `npm/${specifier}` : `${runtime}/${module}`;
}
