import { describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { refuseClashes } from '../../edge/claims.ts';
import { matchRoute } from '../../edge/front/route-patterns.ts';
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

describe('refuseClashes', () => {
  test.each([
    ['the same method and path', [plugin('a', ['GET', '/x']), plugin('b', ['GET', '/x'])]],
    ['every method beside one', [plugin('a', ['ALL', '/x']), plugin('b', ['GET', '/x'])]],
    ['one beside every method', [plugin('a', ['GET', '/x']), plugin('b', ['ALL', '/x'])]],
    [
      'the same path by another parameter name',
      [plugin('a', ['GET', '/:one.js']), plugin('b', ['GET', '/:two.js'])],
    ],
    ['one plugin twice', [plugin('a', ['GET', '/x'], ['GET', '/x'])]],
    [
      'the last of many',
      [plugin('a', ['GET', '/x'], ['POST', '/x'], ['GET', '/y']), plugin('b', ['POST', '/x'])],
    ],
  ])('refuses two claims: %s', (_name, plugins) => {
    expect(() => refuseClashes(plugins)).toThrow(/claim the same/);
  });

  test('two plugins may share a path by method, and have paths that begin alike', () => {
    const list = [plugin('a', ['GET', '/x'], ['ALL', '/y/*']), plugin('b', ['POST', '/x'], ['GET', '/y'])];
    expect(() => refuseClashes(list)).not.toThrow();
  });
});

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

  test('two plugins may share a path by method', async () => {
    const router = buildRouter([plugin('a', ['GET', '/x']), plugin('b', ['POST', '/x'])]);
    expect([...((await router('/x'))?.routes.keys() ?? [])]).toEqual(['GET', 'POST']);
  });
});

describe('matchRoute', () => {
  test.each([
    ['shop.example.net/*', 'https://shop.example.net/a?b', true],
    ['https://shop.example.net/*', 'https://shop.example.net/', true],
    ['SHOP.example.net/*', 'https://shop.example.net:8787/', true],
    ['shop.example.net/*', 'https://other.example.net/', false],
    ['*.example.net/*', 'https://a.b.example.net/x', true],
    ['*.example.net/*', 'https://example.net/x', false],
    ['*example.net/*', 'https://myexample.net/x', true],
    ['shop.example.net', 'https://shop.example.net/', true],
    ['shop.example.net', 'https://shop.example.net/a', false],
    ['shop.example.net/a', 'https://shop.example.net/a?b', false],
    ['shop.example.net/a*', 'https://shop.example.net/ab?c', true],
    ['shop.example.net/A*', 'https://shop.example.net/ab', false],
  ])('%s covers %s: %s', (pattern, url, expected) => {
    expect(matchRoute([pattern], new URL(url))).toBe(expected);
  });
});
