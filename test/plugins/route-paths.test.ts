import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { bundleWorker } from '../../edge/bundle.ts';
import type { Plugin } from '../../plugins/contract.ts';
import { MODULES, ROUTE_PATHS } from '../../plugins/document.ts';
import { serverProxyConfig } from '../../plugins/server_proxy/config.ts';

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
    '/static',
    '/static/x.js',
    '/static/x/y.js',
    '/gtm.js',
    '/gtag/js',
    '/gtag/destination',
    '/ns.html',
    '/healthy',
    '/healthz',
    '/bait/gtm.js',
    '/a/../b',
    '/a b',
    'data',
    '/*',
    '/data*',
    '/data/*/x',
    '/data/**',
    '/static/*',
    '/healthz/../*',
  ])('refuses %s', (path) => {
    expect(accepts(path)).toBe(false);
  });

  test.each(['l', 'c', 'boot', 'mark-session-detection', '_', 'gtm', 'g', 'j', 'mp', '.well-known'])(
    'refuses /%s and every path below it',
    (segment) => {
      const below = ['', '/x', '/x/y', '/*', '/x/*'].map((rest) => `/${segment}${rest}`);
      expect(below.filter(accepts)).toEqual([]);
    },
  );

  test.each([
    '/data',
    '/data/gtm',
    '/data/static/x.js',
    '/r',
    '/r/data',
    '/r/collect/x',
    '/gtag',
    '/gtag/x',
    '/gtag/js/x',
    '/bait/x',
    '/healthz/x',
    '/healthzx',
    '/ns.html/x',
    '/ns-html',
    '/lx',
    '/bootx',
    '/gtmx',
    '/gtm-js',
    '/gtmxjs',
    '/staticx',
    '/tagyard/x',
    '/webhooks/*',
    '/webhooks/orders/*',
    '/gtag/*',
    '/r/*',
  ])('accepts %s', (path) => {
    expect(accepts(path)).toBe(true);
  });

  test.each([
    ['/x/:name.js', '/x/a.js', false],
    ['/x/:name.js', '/x/a/b.js', true],
    ['/x/:name.js', '/x/ajs', true],
    ['/x/:name.js', '/x/.js', true],
    ['/x/:name/y', '/x/a/y', false],
    ['/x/:name/y', '/x/a/y/z', true],
    ['/x/*', '/x', false],
    ['/x/*', '/x/a/b', false],
    ['/x/*', '/xa', true],
    ['/x', '/x', false],
    ['/x', '/x/a', true],
  ])('with a route %s, %s is valid: %s', (route, path, valid) => {
    expect(serverProxyConfig([route]).safeParse({ paths: [path] }).success).toBe(valid);
  });
});

describe('modules.server_proxy.dataLayers', () => {
  test.each([
    [['shopLayer', '_x', '$', 'x'.repeat(64)], true],
    [[], true],
    [['shop-layer'], false],
    [['1st'], false],
    [[''], false],
    [['x'.repeat(65)], false],
    [Array.from({ length: 21 }, (_, index) => `layer${index}`), false],
  ])('%j is accepted: %s', (dataLayers, isAccepted) => {
    expect(MODULES.server_proxy.safeParse({ dataLayers }).success).toBe(isAccepted);
  });
});

describe('modules.server_proxy.tagServingPath', () => {
  test.each([
    ['/t1a2b3c4', true],
    ['/tags/own', true],
    ['/t1a2b3c4/', false],
    ['/t1a2b3c4/*', false],
    ['t1a2b3c4', false],
    ['/', false],
    ['/a/../b', false],
    ['/c', false],
    ['/boot', false],
    ['/static', false],
  ])('%s is accepted: %s', (tagServingPath, isAccepted) => {
    expect(MODULES.server_proxy.safeParse({ tagServingPath }).success).toBe(isAccepted);
  });
});
