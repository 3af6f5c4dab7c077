import { posix } from 'node:path';
import type { Violations } from './rules.ts';
import { importsOf, isNode, lineOf, parse, type SourceFile } from './source.ts';

/**
 * Things for which all code uses one package. Only the files of `only` import the package; all others use those
 * files.
 */
const ONE_WAY: readonly { readonly thing: string; readonly target: string; readonly only: string }[] = [
  { thing: 'a limiter', target: 'npm/p-limit', only: 'base/limit.ts' },
  {
    thing: 'a server',
    target: 'npm/fastify',
    only: '{gitops/http/app.ts,management/{app,http/request-log}.ts,sites/local/**,sites/**}',
  },
  { thing: 'a browser', target: 'npm/playwright-core', only: 'test/**' },
];

/** Imports of such a package by other files; type imports are allowed. */
export function otherWays(files: readonly SourceFile[]): Violations {
  return files.flatMap((file) =>
    importsOf(file).flatMap(({ target, typeOnly }) =>
      ONE_WAY.filter(
        (way) => !typeOnly && way.target === target && !posix.matchesGlob(file.path, way.only),
      ).map(({ thing, only }) => `${file.path}: imports ${target}; ${thing} comes from ${only}`),
    ),
  );
}

/** Folders below `test/` with programs, lists or support code that tests may import. */
const OWN_PARTS = /^test\/(?:support|architecture|bench|conform|fuzz|pictures)\//;
/** Files that tests import although they aren't in such a folder. */
const SHARED = ['test/run.ts', 'test/projects.ts', 'test/gitops/appliers/conformance.ts'];

/**
 * Tests use only the verb `test`, mock no module, and have common code in `test/support`. A test file may import other
 * test files, to run them in another setting.
 */
export function otherTestWays(files: readonly SourceFile[]): Violations {
  const paths = new Set(files.map(({ path }) => path));
  return files.flatMap((file) => [
    ...importsOf(file).flatMap(({ target }) =>
      paths.has(target) && !target.endsWith('.test.ts') && !OWN_PARTS.test(target) && !SHARED.includes(target)
        ? [`${file.path}: imports ${target}; common code of tests is in test/support`]
        : [],
    ),
    ...parse(file).flatMap((node) => {
      const name = importedName(node) ?? mockedBy(node);
      return name === null
        ? []
        : [`${file.path}:${lineOf(file, node)}: uses ${name}; write test(…), and mock no module`];
    }),
  ]);
}

/** `it`, if the node imports it. */
function importedName(node: Parameters<typeof lineOf>[1]): string | null {
  if (node.type !== 'ImportSpecifier' || !isNode(node.imported)) return null;
  return node.imported.name === 'it' ? 'it' : null;
}

/** `vi.mock` and `vi.doMock`. */
function mockedBy(node: Parameters<typeof lineOf>[1]): string | null {
  if (node.type !== 'MemberExpression' || !isNode(node.object) || !isNode(node.property)) return null;
  const [object, property] = [node.object.name, node.property.name];
  return object === 'vi' && (property === 'mock' || property === 'doMock') ? `vi.${property}` : null;
}
