import { globSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { filesOf, POOLS, SUITES, suiteOf } from './suites.ts';

const all = globSync('test/**/*.test.ts').sort();

describe('the suites', () => {
  test('have every test file once', () => {
    const projects = Object.values(POOLS).flat();
    expect(projects.flatMap(filesOf).sort()).toEqual(all);
  });

  test.each(SUITES)('$name has files, and each of its patterns matches some', ({ files }) => {
    expect(files.length).toBeGreaterThan(0);
    for (const pattern of files) expect(globSync(pattern), pattern).not.toEqual([]);
  });

  test('have names of their own', () => {
    expect(new Set(SUITES.map(({ name }) => name)).size).toBe(SUITES.length);
  });

  test.each([
    ['test/architecture.test.ts', 'check', 'unit'],
    ['test/edge/router.test.ts', 'edge', 'unit'],
    ['test/gitops/appliers/dns/conformance.test.ts', 'gitops', 'unit'],
    ['test/integration/services/containers-process.test.ts', 'processes', 'services'],
    ['test/integration/containers/docker.test.ts', 'containers', 'containers'],
    ['test/faults/containers-isolation.test.ts', 'isolation', 'faults'],
    ['test/browser/shop.test.ts', 'browser', 'browser'],
    ['test/integration/databases/kills.test.ts', 'database', 'databases'],
    ['test/faults/cloudflare.test.ts', 'outages', 'faults'],
    ['test/kubernetes/cluster.test.ts', 'cluster', 'cluster'],
    ['test/kubernetes/sites/load.test.ts', 'cluster-sites', 'clusterSites'],
    ['test/kubernetes/appliers/applier-conformance.test.ts', 'cluster-appliers', 'clusterAppliers'],
    ['test/gateway/nodes.test.ts', 'gateway', 'gateway'],
    ['test/gateway/sites/move.test.ts', 'gateway-sites', 'gatewaySites'],
    ['test/management/saga.test.ts', 'api', 'api'],
    ['test/management/sites/decision.test.ts', 'management', 'unit'],
    ['test/gitops/main.test.ts', 'daemons', 'daemons'],
    ['test/fuzz/fuzz.test.ts', 'fuzz', 'fuzz'],
  ])('%s is in the suite %s, in the project %s', (path, name, project) => {
    expect(suiteOf(path)).toMatchObject({ name, project });
  });
});
