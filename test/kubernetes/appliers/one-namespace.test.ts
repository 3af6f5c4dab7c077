import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const NAMESPACE = 'sites';
const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
const NONE = { changes: [], conflicts: [] };
const KINDS = 'deployment,secret,service,networkpolicy,poddisruptionbudget,horizontalpodautoscaler';

/** One namespace, made by others, for the sites of all clients: KUBERNETES_NAMESPACE. */
describeWith(['kubernetes', 'root'], 'sites in one namespace that others have made', () => {
  let cluster: Cluster;
  let sites: SitesCluster;
  let runs: SiteRuns;
  const acme = loadedManifest('acme-shop', 0);
  const other = { ...loadedManifest('other-shop', 1), client: '0d4c2f3a-55b1-4a0e-9d0b-7a8f0c1d2e3f' };
  const kubectl = (...args: string[]) => cluster.kubectl('--namespace', NAMESPACE, ...args);
  const listed = async (kinds = KINDS) =>
    (await kubectl('get', kinds, '--output', 'name')).trim().split('\n').filter(Boolean);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await importTagServer(cluster);
    await cluster.kubectl('create', 'namespace', NAMESPACE);
    sites = await openSites({
      kubeconfig: await accountIn(NAMESPACE),
      identity: { instance: 'shops', host: 'tag-1' },
      namespace: NAMESPACE,
    });
    runs = new SiteRuns(sites);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  /** The kubeconfig of an account that may do everything in this namespace, and nothing elsewhere. */
  async function accountIn(namespace: string): Promise<string> {
    const file = join(cluster.folder, 'one-namespace.kubeconfig');
    const config = JSON.parse(await readFile(cluster.kubeconfig, 'utf8'));
    await cluster.kubectl('create', 'serviceaccount', 'one', '--namespace', 'default');
    const flags = ['--clusterrole=admin', '--serviceaccount=default:one', '--namespace', namespace];
    await cluster.kubectl('create', 'rolebinding', 'one', ...flags);
    const token = (await cluster.kubectl('create', 'token', 'one', '--namespace', 'default')).trim();
    const users = config.users.map(({ name }: { name: string }) => ({ name, user: { token } }));
    await writeFile(file, JSON.stringify({ ...config, users }));
    return file;
  }

  test('fail with a message that names the namespace if it doesn’t exist', async () => {
    const identity = { instance: 'shops', host: 'tag-1' };
    const absent = await openSites({ kubeconfig: cluster.kubeconfig, identity, namespace: 'absent' });
    const { errors } = await new SiteRuns(absent).run(acme);
    await absent.close();
    expect(errors.map(String).join()).toContain('namespaces "absent" not found');
    expect(errors.map(String).join()).toContain('KUBERNETES_NAMESPACE');
  });

  test('run beside those of another client, and make nothing in other namespaces', async () => {
    await cluster.create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'theirs', namespace: NAMESPACE },
    });
    expect((await runs.run(acme, other)).errors).toEqual([]);
    expect(await runs.plan(acme, other)).toEqual(NONE);
    expect(await listed('deployment')).toHaveLength(4);
    const namespaces = await cluster.kubectl('get', 'namespaces', '--output', 'name');
    expect(namespaces).not.toContain('tagyard');
    expect(await listed('resourcequota')).toEqual([]);
  });

  test.each(['tagyard/host-', 'tagyard/host=tag-2', 'tagyard/gateway=site'])(
    'get their objects’ labels back after others have changed them: %s',
    async (label) => {
      const hidden = ['deployment/tag-acme-shop-processing', 'service/tag-acme-shop-preview'];
      await kubectl('label', '--overwrite', ...hidden, label);
      await eventually(async () => {
        const { changes } = await runs.plan(acme, other);
        expect(changes.map(({ key }) => key)).toHaveLength(hidden.length);
      }, WAIT);
      expect((await runs.run(acme, other)).errors).toEqual([]);
      expect(await runs.plan(acme, other)).toEqual(NONE);
      const followed = 'tagyard/host=tag-1,!tagyard/gateway';
      expect((await listed('deployment,service')).length).toBe(8);
      const names = (await kubectl('get', 'deployment,service', '-l', followed, '--output', 'name')).trim();
      expect(names.split('\n')).toHaveLength(8);
    },
  );

  test('are removed one by one with all that they had, and nothing of others is removed', async () => {
    expect((await runs.run(other)).errors).toEqual([]);
    await eventually(async () => {
      expect((await runs.run(other)).errors).toEqual([]);
      expect((await listed()).filter((name) => name.includes('acme-shop'))).toEqual([]);
    }, WAIT);
    expect((await listed()).filter((name) => name.includes('other-shop'))).toHaveLength(9);
    await eventually(async () => {
      expect((await runs.run()).errors).toEqual([]);
      expect((await listed()).filter((name) => name.includes('-shop'))).toEqual([]);
    }, WAIT);
    expect(await listed('configmap')).toContain('configmap/theirs');
  });
});
