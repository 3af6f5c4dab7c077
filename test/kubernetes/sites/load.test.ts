import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import type { KubernetesObject } from '../../../gitops/kubernetes/client/kinds.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { importKeptServer, KEPT_SERVER } from '../../support/kubernetes/kept-server.ts';
import { ip } from '../../support/kubernetes/machine.ts';
import { startServiceLoad } from '../../support/kubernetes/service-load.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const WAIT = { timeoutMs: 120_000, intervalMs: 200 };
const PER_SECOND = 20;
const OTHER_CLIENT = '0d4c2f3a-55b1-4a0e-9d0b-7a8f0c1d2e3f';
const PROCESSING = 'tag-acme-shop-processing';
/** What a pod requests: so little that the load is above it on a fast machine, too. */
const REQUESTED = '8m';

const configured = (env: string, replicas = { min: 2, max: 3 }): LoadedManifest => {
  const manifest = loadedManifest('acme-shop', 0);
  const { processing } = manifest.resources;
  return {
    ...manifest,
    image: KEPT_SERVER,
    resources: { ...manifest.resources, processing: { ...processing, replicas } },
    config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}&auth=s3cret-auth-t0ken`).toString('base64')),
  };
};

/** Seconds between two health checks by each of a pod's two probes. */
const HEALTH_SECONDS = 5;
/** After this many failed health checks, a pod would get no requests, and would be restarted. */
const HEALTH_CHECKS = 8;

interface Container {
  readonly resources: object;
  readonly livenessProbe: object;
}

interface DeploymentSpec {
  readonly template: { readonly spec: { readonly containers: readonly Container[] } };
}

function requesting(object: KubernetesObject): KubernetesObject {
  const spec = object.spec as DeploymentSpec; // as the renderer makes it
  const containers = spec.template.spec.containers.map((container) => ({
    ...container,
    resources: { ...container.resources, requests: { cpu: REQUESTED, memory: '1Mi' } },
    livenessProbe: { ...container.livenessProbe, periodSeconds: HEALTH_SECONDS },
  }));
  const template = { ...spec.template, spec: { ...spec.template.spec, containers } };
  return { ...object, spec: { ...spec, template } };
}

describeWith(['kubernetes', 'root'], 'a site in a cluster under load', () => {
  let cluster: Cluster;
  let sites: SitesCluster;
  let runs: SiteRuns;
  const acme = configured('1');
  const ofThree = configured('1', { min: 3, max: 3 });
  const kubectl = (...args: string[]) =>
    cluster.kubectl('--namespace', `tagyard-shops-${acme.client}`, ...args);
  const target = { host: '', port: acme.ports.processing, perSecond: PER_SECOND };

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 2, metrics: true, lostAfter: 18 });
    await importKeptServer(cluster);
    sites = await openSites({
      kubeconfig: cluster.kubeconfig,
      identity: { instance: 'shops', host: 'tag-1' },
      deployment: requesting,
    });
    runs = new SiteRuns(sites);
    expect((await runs.run(acme)).errors).toEqual([]);
    target.host = await kubectl('get', 'service', PROCESSING, '--output', 'jsonpath={.spec.clusterIP}');
    // The machine reaches the Service as a balancer in front of the cluster does, through a node.
    await ip(`route add ${target.host}/32 via ${cluster.nodes[0]?.address}`);
    await eventually(() => fetch(`http://${target.host}:${target.port}/`), WAIT);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  /** Does `work` under load. Fails if a request isn't answered. Returns the different answers. */
  async function withoutLoss(work: () => Promise<unknown>): Promise<ReadonlySet<string>> {
    const load = startServiceLoad(target);
    const [done] = await Promise.allSettled([work()]);
    const { sent, failures, answers } = await load.end();
    expect(failures).toEqual([]);
    if (done.status === 'rejected') throw done.reason;
    expect(sent).toBeGreaterThan(PER_SECOND);
    return answers;
  }
  const number = async () =>
    Number(await kubectl('get', 'deployment', PROCESSING, '--output', 'jsonpath={.status.readyReplicas}'));
  const pods = async (...selection: string[]): Promise<string[]> => {
    const found = await kubectl(
      ...['get', 'pods', '--selector', 'tagyard/role=processing', '--output', 'name'],
      ...selection,
    );
    return found.split('\n').filter(Boolean);
  };

  test('gets another pod from its autoscaler, and no plan removes that pod', async () => {
    expect(await number()).toBe(2);
    await withoutLoss(() => eventually(async () => expect(await number()).toBe(3), WAIT));
    expect(await runs.plan(acme)).toEqual({ changes: [], conflicts: [] });
  });

  test('loses no request while a change is rolled out, and while it is undone', async () => {
    const answers = await withoutLoss(async () => {
      for (const env of ['2', '1']) expect((await runs.run(configured(env))).errors).toEqual([]);
      // Until the replaced pods have ended.
      await eventually(async () => expect(await pods()).toHaveLength(await number()), WAIT);
    });
    expect([...answers].map((answer) => /env=(\d)/.exec(answer)?.[1]).toSorted()).toEqual(['1', '2']);
  });

  test('loses no request when a pod is deleted', async () => {
    await withoutLoss(async () => {
      const [first = ''] = await pods();
      await kubectl('delete', first);
      await eventually(async () => expect(await number()).toBeGreaterThanOrEqual(2), WAIT);
    });
  });

  test('loses no request when the API server is restarted', async () => {
    await withoutLoss(() => cluster.restartApiServer());
    await eventually(async () => expect((await runs.run(acme)).errors).toEqual([]), WAIT);
  });

  test('loses no request when a node’s kubelet is cut off from the API server', async () => {
    const [first, second] = cluster.nodes;
    if (first === undefined || second === undefined) throw new Error('the cluster lacks a node');
    expect(await pods('--field-selector', `spec.nodeName=${second.name}`)).not.toEqual([]);
    await withoutLoss(async () => {
      await second.cut('api');
      await cluster.nodesAre({ [first.name]: 'True', [second.name]: 'Unknown' });
      await second.heal();
      await cluster.nodesAreReady();
    });
  });

  test('loses no request, and no pod is restarted, while all pods are so old that their health check answers 503', async () => {
    const inAll = (names: readonly string[], command: string) =>
      Promise.all(names.map((name) => kubectl('exec', name, '--', '/bin/busybox', 'sh', '-c', command)));
    // Its autoscaler adds and removes no pod from here on.
    expect((await runs.run(ofThree)).errors).toEqual([]);
    await withoutLoss(async () => {
      const names = await eventually(async () => {
        expect(await number()).toBe(3);
        const found = await pods();
        expect(found).toHaveLength(3);
        return found;
      }, WAIT);
      await inAll(names, '/bin/busybox touch /tmp/old');
      const url = `http://127.0.0.1:${acme.ports.processing}/healthz`;
      const answers = await inAll(names, `/bin/busybox wget -O - ${url} 2>&1 || true`);
      expect(answers).toEqual(names.map(() => expect.stringContaining('503')));
      await eventually(async () => {
        const counts = await inAll(names, '/bin/busybox wc -l < /tmp/old');
        expect(Math.min(...counts.map(Number))).toBeGreaterThanOrEqual(HEALTH_CHECKS);
      }, WAIT);
      expect(await number()).toBe(3);
      const restarts = '--output=jsonpath={.items[*].status.containerStatuses[*].restartCount}';
      expect(new Set((await kubectl('get', ...names, restarts)).split(' '))).toEqual(new Set(['0']));
      await inAll(names, '/bin/busybox rm /tmp/old');
    });
  });

  test('loses no request when a node is drained, and the drain completes', async () => {
    const [, second] = cluster.nodes;
    if (second === undefined) throw new Error('the cluster lacks a node');
    const there = ['--field-selector', `spec.nodeName=${second.name}`];
    expect(await pods(...there)).not.toEqual([]);
    await withoutLoss(async () => {
      await cluster.kubectl('drain', second.name, '--delete-emptydir-data', '--timeout=120s');
    });
    expect(await pods(...there)).toEqual([]);
    expect(await number()).toBeGreaterThanOrEqual(2);
  });

  test('refuses connections to ports of another client, whose pod may have had the address', async () => {
    const ports = { processing: 20_010, preview: 20_011 };
    const theirs = { ...configured('9'), site: 'other-shop', client: OTHER_CLIENT, ports };
    expect((await runs.run(ofThree, theirs)).errors).toEqual([]);
    const found = JSON.parse(
      await cluster.kubectl('get', 'pods', '--all-namespaces', '--output=json', '--selector=tagyard/role'),
    ).items as { metadata: { labels: Record<string, string> }; status: { podIP: string } }[];
    for (const { metadata, status } of found) {
      const [own, strange] = metadata.labels['tagyard/site'] === acme.site ? [acme, theirs] : [theirs, acme];
      const role = metadata.labels['tagyard/role'] as 'processing' | 'preview'; // as the selector asks for it
      const at = (port: number) => fetch(`http://${status.podIP}:${port}/`);
      expect((await at(own.ports[role])).status).toBe(200);
      for (const port of Object.values(strange.ports)) {
        await expect(at(port)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } });
      }
    }
    expect(new Set(found.map(({ metadata }) => metadata.labels['tagyard/site']))).toEqual(
      new Set([acme.site, theirs.site]),
    );
  });
});
