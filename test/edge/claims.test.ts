import { describe, expect, test } from 'vitest';
import * as z from 'zod/mini';
import { refuseClashes } from '../../edge/claims.ts';
import { CORE_BOOT_MEMBERS, type Plugin, type Route } from '../../plugins/contract.ts';

function plugin(name: string, ...routes: [Route['method'], string][]): Plugin {
  return {
    name,
    kind: 'mandatory',
    config: z.object({}),
    routes: routes.map(([method, path]) => ({ method, path, handle: () => new Response(name) })),
  };
}

describe('the check for clashes of routes', () => {
  test.each([
    ['the same method and path', [plugin('a', ['GET', '/x']), plugin('b', ['GET', '/x'])]],
    ['all methods and one of them', [plugin('a', ['ALL', '/x']), plugin('b', ['GET', '/x'])]],
    ['one method and all methods', [plugin('a', ['GET', '/x']), plugin('b', ['ALL', '/x'])]],
    [
      'one path with two parameter names',
      [plugin('a', ['GET', '/:one.js']), plugin('b', ['GET', '/:two.js'])],
    ],
    ['one route twice in one plugin', [plugin('a', ['GET', '/x'], ['GET', '/x'])]],
    [
      'a route of a plugin that has several',
      [plugin('a', ['GET', '/x'], ['POST', '/x'], ['GET', '/y']), plugin('b', ['POST', '/x'])],
    ],
  ])('refuses %s', (_name, plugins) => {
    expect(() => refuseClashes(plugins)).toThrow(/claim the same route/);
  });

  test('accepts one path with different methods, and paths with one prefix', () => {
    const list = [plugin('a', ['GET', '/x'], ['ALL', '/y/*']), plugin('b', ['POST', '/x'], ['GET', '/y'])];
    expect(() => refuseClashes(list)).not.toThrow();
  });
});

describe('the stated order', () => {
  const later: Plugin = { ...plugin('later'), follows: ['earlier'] };

  test('refuses a plugin that stands before one that it follows', () => {
    expect(() => refuseClashes([later, plugin('earlier')])).toThrow(
      'later follows earlier, but stands before it in the list',
    );
  });

  test('accepts the other order, and a list without the other plugin', () => {
    expect(() => refuseClashes([plugin('earlier'), later])).not.toThrow();
    expect(() => refuseClashes([later])).not.toThrow();
  });
});

describe('two routes that set the visitor’s id', () => {
  const setting = (name: string, path: string): Plugin => {
    const made = plugin(name, ['GET', path]);
    return { ...made, routes: made.routes.map((route) => ({ ...route, setsId: true })) };
  };
  test('are refused', () => {
    expect(() => refuseClashes([setting('a', '/x'), setting('b', '/y')])).toThrow(
      "a (/x) and b (/y) both set the visitor's id",
    );
    expect(() => refuseClashes([setting('a', '/x'), plugin('b', ['GET', '/y'])])).not.toThrow();
  });
});

describe('the check for clashes of members of the answer of /boot', () => {
  test.each(CORE_BOOT_MEMBERS)('refuses a plugin with the name of the core’s member "%s"', (name) => {
    expect(() => refuseClashes([plugin(name)])).toThrow(`claim the member "${name}"`);
  });

  test.each([
    ['two plugins with one name', [plugin('a'), plugin('a')], 'a and a claim the member "a"'],
    [
      'two plugins with one declared member',
      [
        { ...plugin('a'), bootMember: 'x' },
        { ...plugin('b'), bootMember: 'x' },
      ],
      'a and b claim the member "x"',
    ],
    [
      'a declared member that is another plugin’s name',
      [plugin('a'), { ...plugin('b'), bootMember: 'a' }],
      'a and b claim the member "a"',
    ],
    [
      'a declared member of the core',
      [{ ...plugin('a'), bootMember: 'session' }],
      'Tagyard itself and a claim the member "session"',
    ],
  ])('refuses %s', (_name, plugins, message) => {
    expect(() => refuseClashes(plugins)).toThrow(message);
  });

  test('accepts plugins with different names and members', () => {
    const list = [plugin('a'), { ...plugin('b'), bootMember: 'restoreCookies' }];
    expect(() => refuseClashes(list)).not.toThrow();
  });
});
