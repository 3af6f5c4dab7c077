import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { ip } from '../support/kubernetes/machine.ts';
import { importTagServer } from '../support/kubernetes/sites.ts';
import { HOSTS, type Host, MOVED_SITE, TwoHosts } from '../support/kubernetes/two-hosts.ts';
import { ask } from '../support/proxy/proxy.ts';

const WAIT = { timeoutMs: 120_000, intervalMs: 500 };
const ROLES = ['origin', 'preview'] as const;
const SAMPLES = { timeoutMs: 600_000, intervalMs: 100 };

describeWith(['kubernetes', 'root'], 'a site that moves between a machine and a cluster', () => {
  let cluster: Cluster;
  let hosts: TwoHosts;
  let tlsPort: number;
  const namespace = () => `tagyard-test-${hosts.manifest.client}`;

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    // DRAIN_SECONDS: how long clients may still use the old address of a name that they have resolved.
    hosts = await TwoHosts.open(await importTagServer(cluster), { DRAIN_SECONDS: '1' });
    tlsPort = await hosts.startMachine();
    await hosts.startCluster({ KUBECONFIG: cluster.kubeconfig, KUBERNETES_ADMIT_CIDRS: '0.0.0.0/0' });
    // The machine reaches Services as a balancer in front of the cluster does, through a node.
    const api = await cluster.kubectl('get', 'service', 'kubernetes', '--output=jsonpath={.spec.clusterIP}');
    await ip(`route add ${api.replace(/\.0\.1$/, '.0.0/16')} via ${cluster.nodes[0]?.address}`);
  });
  afterAll(async () => {
    await hosts?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
  });

  /** Asks a host for a name of the site; throws unless the site answers there. */
  async function askAt(host: Host, role: (typeof ROLES)[number]): Promise<void> {
    const name = hosts.manifest.hostnames[role];
    if (host === 'tag-1') {
      const endpoint = { address: '127.0.0.1', httpPort: 0, tlsPort };
      const { status } = await ask(endpoint, { host: name, path: '/healthz' });
      if (status !== 200) throw new Error(`status ${status}`);
      return;
    }
    const which = role === 'origin' ? 'processing' : 'preview';
    const service = ['get', 'service', `tag-${MOVED_SITE}-${which}`, '--namespace', namespace()];
    const address = await cluster.kubectl(...service, '--output=jsonpath={.spec.clusterIP}');
    const { status } = await fetch(`http://${address}:${hosts.manifest.ports[which]}/healthz`);
    if (status !== 200) throw new Error(`status ${status}`);
  }

  /** Asks at both names' addresses again and again until the work is done. Returns where nothing answered. */
  async function gapsDuring(
    work: () => Promise<unknown>,
  ): Promise<{ gaps: string[]; seen: Set<Host | undefined> }> {
    const gaps: string[] = [];
    const seen = new Set<Host | undefined>();
    let isDone = false;
    const sample = async () => {
      const found = await hosts.records();
      for (const role of ROLES) {
        const host = hosts.hostIn(found, role);
        if (host === undefined) gaps.push(`${role} leads to neither host`);
        else await askAt(host, role).catch((error: unknown) => gaps.push(`${role} at ${host}: ${error}`));
        seen.add(host);
      }
      if (!isDone) throw new Error('the work isn’t done');
    };
    const watching = eventually(sample, SAMPLES);
    try {
      await work();
    } finally {
      isDone = true;
      await watching;
    }
    return { gaps, seen };
  }

  async function isReadyOn(host: Host): Promise<void> {
    await eventually(() => hosts.expectReadyOn(host, ROLES), WAIT);
    const owners = (await hosts.records()).flatMap(
      ({ comment }) => / (tag-\d) acme-shop /.exec(comment ?? '')?.[1] ?? [],
    );
    expect(new Set(owners)).toEqual(new Set([host]));
  }

  async function isGoneFrom(host: Host): Promise<void> {
    await eventually(async () => {
      if (host === 'tag-2') {
        expect(await cluster.kubectl('get', 'namespaces', '--output=name')).not.toContain(namespace());
      } else {
        for (const role of ROLES) await expect(askAt(host, role)).rejects.toThrow();
      }
    }, WAIT);
  }

  test('moves to the cluster and back: its names always lead to a host that answers, and nothing is left on the old one', async () => {
    await hosts.commitOthers();
    await hosts.moveTo('tag-1');
    await isReadyOn('tag-1');
    for (const [from, to] of [
      ['tag-1', 'tag-2'],
      ['tag-2', 'tag-1'],
    ] as const) {
      const { gaps, seen } = await gapsDuring(async () => {
        await hosts.moveTo(to);
        await isReadyOn(to);
        await isGoneFrom(from);
      });
      expect(gaps).toEqual([]);
      expect(seen).toEqual(new Set(HOSTS));
      for (const role of ROLES) await askAt(to, role);
    }
  });
});
