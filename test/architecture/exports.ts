import { posix } from 'node:path';
import type { Violations } from './rules.ts';
import { importTarget, isNode, lineOf, type Node, parse, type SourceFile } from './source.ts';

/** Names that a framework or a contract asks for, so that many files export them. */
const BY_CONTRACT: readonly { readonly name: string; readonly in: string }[] = [
  { name: 'default', in: '**' },
  { name: 'config', in: 'plugins/*/config.ts' },
  { name: 'up', in: 'management/db/migrations/*.ts' },
];

const isByContract = (path: string, name: string) =>
  BY_CONTRACT.some((rule) => rule.name === name && posix.matchesGlob(path, rule.in));

function list(member: unknown): Node[] {
  return Array.isArray(member) ? member.filter(isNode) : [];
}

/** An identifier's name, or the text of a quoted one. */
function nameOf(node: unknown): string {
  if (!isNode(node)) return '';
  return String(node.name ?? node.value ?? '');
}

/** Names that a binding introduces: `a`, `{ a, b: c }` or `[a]`. */
function boundNames(node: unknown): string[] {
  if (!isNode(node)) return [];
  if (node.type === 'Identifier') return [nameOf(node)];
  if (node.type === 'ObjectPattern') return list(node.properties).flatMap((one) => boundNames(one.value));
  if (node.type === 'ArrayPattern') return list(node.elements).flatMap(boundNames);
  return [];
}

interface Export {
  readonly path: string;
  readonly name: string;
  readonly line: number;
}

/** What a file exports by name, re-exports included. */
function exportsOf(file: SourceFile): Export[] {
  return parse(file).flatMap((node) => {
    if (node.type === 'ExportDefaultDeclaration') {
      return [{ path: file.path, name: 'default', line: lineOf(file, node) }];
    }
    if (node.type !== 'ExportNamedDeclaration') return [];
    const declaration = isNode(node.declaration) ? node.declaration : null;
    const declared =
      declaration?.type === 'VariableDeclaration'
        ? list(declaration.declarations).flatMap(({ id }) => boundNames(id))
        : [nameOf(declaration?.id)];
    const listed = list(node.specifiers).map(({ exported }) => nameOf(exported));
    const line = lineOf(file, node);
    return [...declared, ...listed].filter(Boolean).map((name) => ({ path: file.path, name, line }));
  });
}

/** `path name` of everything that a file imports from others; `path *` if it imports all. */
function usesOf(file: SourceFile): string[] {
  return parse(file).flatMap((node) => {
    const path = importTarget(file.path, node);
    if (path === null) return [];
    if (node.type === 'ExportNamedDeclaration') {
      return list(node.specifiers).map(({ local }) => `${path} ${nameOf(local)}`);
    }
    if (node.type === 'TSImportType') {
      return [`${path} ${isNode(node.qualifier) ? nameOf(node.qualifier) : '*'}`];
    }
    if (node.type !== 'ImportDeclaration') return [`${path} *`];
    return list(node.specifiers).map((specifier) => {
      if (specifier.type === 'ImportNamespaceSpecifier') return `${path} *`;
      if (specifier.type === 'ImportDefaultSpecifier') return `${path} default`;
      return `${path} ${nameOf(specifier.imported)}`;
    });
  });
}

/** One word for one thing: a name is exported by one file only. */
export function duplicateExports(files: readonly SourceFile[]): Violations {
  const all = files.flatMap(exportsOf).filter(({ path, name }) => !isByContract(path, name));
  return [...Map.groupBy(all, ({ name }) => name)].flatMap(([name, places]) => {
    const paths = [...new Set(places.map(({ path }) => path))];
    return paths.length > 1 ? [`${name} is exported by ${paths.join(', ')}`] : [];
  });
}

/** Every export must be imported by another file. `users` are all files that count as importers, tests included. */
export function unusedExports(files: readonly SourceFile[], users: readonly SourceFile[]): Violations {
  const used = new Set(users.flatMap(usesOf));
  return files
    .flatMap(exportsOf)
    .filter(
      ({ path, name }) => !isByContract(path, name) && !used.has(`${path} ${name}`) && !used.has(`${path} *`),
    )
    .map(({ path, name, line }) => `${path}:${line}: exports ${name}, which no other file imports`);
}
