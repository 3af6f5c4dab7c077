import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { bundleWorker } from '../../edge/bundle.ts';
import type { Plugin } from '../../plugins/contract.ts';
import { MODULES, ROUTE_PATHS } from '../../plugins/document.ts';

/** Bundled, because Node can't import the plugins' scripts for pages. */
async function loadPlugins(): Promise<readonly Plugin[]> {
  const list = fileURLToPath(new URL('../../plugins/index.ts', import.meta.url));
  const text = await bundleWorker(list);
  return (await import(`data:text/javascript,${encodeURIComponent(text)}`)).PLUGINS;
}

const accepts = (path: string) => MODULES.server_proxy.safeParse({ paths: [path] }).success;

test('the path table has the path of every plugin’s routes, and no other', async () => {
  const plugins = await loadPlugins();
  const paths = plugins.flatMap(({ routes }) => routes.map(({ path }) => path));
  expect([...new Set(paths)].toSorted()).toEqual(ROUTE_PATHS.toSorted());
});

describe('modules.server_proxy.paths', () => {
  test.each(ROUTE_PATHS.map((path) => [path.replace(':token', 'x').replace('*', 'x.js'), path]))(
    'refuses %s, which the route %s answers',
    (path) => {
      expect(accepts(path)).toBe(false);
    },
  );

  test.each([
    '/',
    '/r/collect',
    '/r/other',
    '/static/x.js',
    '/l/x',
    '/l',
    '/c/x',
    '/boot',
    '/boot/x',
    '/mark-session-detection/x',
    '/_/x',
    '/g',
    '/j/x',
    '/mp/x',
    '/gtm/x',
    '/gtag/js',
    '/.well-known/x',
    '/healthz',
    '/a/../b',
    '/a b',
    'data',
  ])('refuses %s', (path) => {
    expect(accepts(path)).toBe(false);
  });

  test.each(['/data', '/data/gtm', '/lx', '/bootx', '/gtmx', '/gtm-js', '/gtmxjs', '/staticx', '/tagyard/x'])(
    'accepts %s',
    (path) => {
      expect(accepts(path)).toBe(true);
    },
  );
});
