import { describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { buildRouter } from '../../edge/router.ts';
import type { Plugin, Route } from '../../plugins/contract.ts';

function plugin(name: string, ...routes: [Route['method'], string][]): Plugin {
  return {
    name,
    kind: 'mandatory',
    config: z.object({}),
    routes: routes.map(([method, path]) => ({ method, path, handle: () => new Response(name) })),
  };
}

describe('buildRouter', () => {
  test.each([
    ['/x', 'a'],
    ['/x/', undefined],
    ['//x', undefined],
    ['/X', undefined],
    ['/y/', 'b'],
    ['/y/1/2', 'b'],
    ['/yy', undefined],
    ['/l/a%2Fb.js', 'c'],
    ['/l/a/b.js', undefined],
    ['/l/%ff.js', undefined],
    ['/lXa.js', undefined],
  ])('%s → %s', async (path, expected) => {
    const router = buildRouter([
      plugin('a', ['GET', '/x']),
      plugin('b', ['ALL', '/y/*']),
      plugin('c', ['GET', '/l/:token.js']),
    ]);
    const match = await router(path);
    expect([...(match?.routes.values() ?? [])].map((mounted) => mounted.plugin.name)).toEqual(
      expected === undefined ? [] : [expected],
    );
  });

  test('decodes parameters', async () => {
    const router = buildRouter([plugin('c', ['GET', '/l/:token.js'])]);
    expect((await router('/l/a%2Fb.js'))?.params).toEqual({ token: 'a/b' });
  });

  test('two plugins may have one path with different methods', async () => {
    const router = buildRouter([plugin('a', ['GET', '/x']), plugin('b', ['POST', '/x'])]);
    expect([...((await router('/x'))?.routes.keys() ?? [])]).toEqual(['GET', 'POST']);
  });
});
