import { expect, test } from 'vitest';
import { otherTestWays, otherWays } from './architecture/one-way.ts';
import { deploySources, files, sources } from './architecture/tree.ts';

const tree = (...pairs: readonly (readonly [path: string, text: string])[]) =>
  pairs.map(([path, text]) => ({ path, text }));

test('the tree does each thing in one way', () => {
  expect(otherWays([...sources(), ...deploySources()])).toEqual([]);
});

test('the tests call `test` and not `it`, mock no module, and have common code in test/support', () => {
  expect(otherTestWays(files('test/**/*.ts'))).toEqual([]);
});

test.each([
  ['gitops/loop/a.ts', `import pLimit from 'p-limit';`],
  ['management/sites/a.ts', `import fastify from 'fastify';`],
])('an import that does a thing in another way is refused: %s, %s', (path, text) => {
  expect(otherWays(tree([path, text]))).toHaveLength(1);
});

test.each([
  ['base/limit.ts', `import pLimit from 'p-limit';`],
  ['management/sites/a.ts', `import type { FastifyInstance } from 'fastify';`],
])('an import that does a thing in the one way is allowed: %s, %s', (path, text) => {
  expect(otherWays(tree([path, text]))).toEqual([]);
});

test.each([
  `import { expect, it } from 'vitest';`,
  `vi.mock('../gitops/a.ts', () => ({}));`,
  `import { helper } from './helper.ts';`,
])('a test that does a thing in another way is refused: %s', (text) => {
  const shared = tree(['test/gitops/helper.ts', ''], ['test/support/b.ts', '']);
  expect(otherTestWays([...tree(['test/gitops/a.test.ts', text]), ...shared])).toHaveLength(1);
  const supported = `import { b } from '../support/b.ts'; vi.spyOn(process, 'exit');`;
  expect(otherTestWays([...tree(['test/gitops/a.test.ts', supported]), ...shared])).toEqual([]);
});
