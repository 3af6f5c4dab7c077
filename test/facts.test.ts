import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { files } from './architecture/tree.ts';
import { headings } from './conform/headings.ts';

/** Facts about outside systems: each with its heading, and the files that test the product or a stand-in against it. */
const SOURCED: readonly (readonly [fact: string, heading: string, files: readonly string[]])[] = [
  [
    'CONTAINER_CONFIG is canonical base64',
    'Container configuration',
    ['test/sites/manifest/container-config.test.ts', 'test/management/validation.daemon.test.ts'],
  ],
  [
    'the order of the health checks, and the comma in their header',
    'Health',
    ['test/sites/local/demo/tag-server.test.ts'],
  ],
  [
    'the fetch at the start has no time limit',
    'Start and run',
    ['test/sites/local/demo/tag-server-process.daemon.test.ts'],
  ],
  [
    'GOOGLE_APPLICATION_CREDENTIALS',
    'Start and run',
    ['test/gitops/appliers/containers/docker-spec.test.ts'],
  ],
  [
    'cookies with `domain: auto`',
    'Paths',
    ['test/browser/auto-cookies.test.ts', 'test/sites/local/demo/tag-server.test.ts'],
  ],
  [
    'names by DNS, and by the hosts file only where DNS has nothing',
    'Start and run',
    ['test/integration/containers/preview.test.ts', 'test/sites/local/demo/lookup.test.ts'],
  ],
  ['the tag serving path', 'Paths', ['test/sites/local/demo/tag-server.test.ts']],
  ['drafts of a container', 'Preview server', ['test/sites/local/demo/tag-server.test.ts']],
  [
    'paths that a client claims by a prefix',
    'Paths',
    ['test/sites/manifest/documents.test.ts', 'test/plugins/server-proxy.daemon.test.ts'],
  ],
  [
    'where hits go',
    'Web container script',
    ['test/browser/contacted-hosts.test.ts', 'test/sites/local/demo/vendor.test.ts'],
  ],
  [
    'hits go through a service worker of the server container',
    'Service worker',
    ['test/browser/service-worker.test.ts'],
  ],
  [
    'KV shows writes late, also where a key was absent; a key takes one write a second',
    'Cloudflare Workers',
    ['test/sites/local/cloudflare/kv/delayed.test.ts', 'test/sites/local/cloudflare/kv/kv.test.ts'],
  ],
  [
    'a wildcard route, and the foreign hosts that it catches',
    'Cloudflare Workers',
    ['test/edge/pass-through.test.ts', 'test/gitops/appliers/edge/routes.test.ts'],
  ],
  ['a wildcard record', 'DNS updates', ['test/gitops/appliers/dns/wildcard.test.ts']],
  ['the universal certificate', 'Cloudflare Workers', ['test/gitops/host-report/edge-names.test.ts']],
];

describe('docs/facts.md', () => {
  test.each(SOURCED)('%s: %s is the source that the tests name', (_fact, heading, paths) => {
    expect(headings()).toContain(heading);
    for (const path of paths) {
      const text = readFileSync(new URL(`../${path}`, import.meta.url), 'utf8');
      expect(text, path).toContain(`(docs/facts.md, ${heading})`);
    }
  });

  test('has every heading that a source or a test names', () => {
    const known = [...headings()];
    const named = files('{edge,plugins,gitops,management,sites,test}/**/*.{ts,js}').flatMap(
      ({ path, text }) =>
        [...text.matchAll(/\(docs\/facts\.md, ([A-Z].{0,60})/g)].map(([, rest = '']) => ({ path, rest })),
    );
    expect(named.length).toBeGreaterThan(SOURCED.length);
    expect(named.filter(({ rest }) => !known.some((heading) => rest.startsWith(heading)))).toEqual([]);
  });
});
