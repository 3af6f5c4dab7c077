import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatManifest } from '../../gitops/manifest/load.ts';
import type { ManifestInput } from '../../gitops/manifest/schema.ts';
import { encryptSecret } from '../../gitops/manifest/secrets.ts';
import { initSitesRepo } from '../../gitops/sites-repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../gitops/sites-repo/sites-repo.ts';
import { NO_LIMITS, startEmulator, type TestEmulator } from '../support/cloudflare/emulator.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { ip } from '../support/kubernetes/machine.ts';
import { ProvisionerProcess } from '../support/kubernetes/provisioner.ts';
import { importTagServer } from '../support/kubernetes/sites.ts';
import { manifestInput } from '../support/manifest.ts';
import { ask } from '../support/proxy/proxy.ts';
import { containerConfig } from '../support/tag-server.ts';

const SITE = 'acme-shop';
const HOSTS = ['tag-1', 'tag-2'] as const;
type Host = (typeof HOSTS)[number];
/** `tag-1` is a machine, `tag-2` the cluster. */
const ADDRESSES: Readonly<Record<Host, string>> = { 'tag-1': '198.51.100.4', 'tag-2': '198.51.100.9' };
const WAIT = { timeoutMs: 120_000, intervalMs: 500 };
const ROLES = ['origin', 'preview'] as const;
const SAMPLES = { timeoutMs: 600_000, intervalMs: 100 };

interface DnsRecord {
  readonly name: string;
  readonly content: string;
  readonly comment: string | null;
}

/** Two provisioners as processes, one on a machine and one of a real cluster, with one age identity and one Cloudflare. */
describeWith(['kubernetes', 'root'], 'a site that moves between a machine and a cluster', () => {
  let folder: string;
  let cluster: Cluster;
  let emulator: TestEmulator;
  let repo: SitesRepo;
  let manifest: ManifestInput;
  let tlsPort: number;
  const provisioners = new Map<Host, ProvisionerProcess>();
  const namespace = () => `tagyard-test-${manifest.client}`;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tagyard-move-'));
    [cluster, emulator] = await Promise.all([
      Cluster.start({ nodes: 1 }),
      // What the names' addresses are asked counts as well.
      startEmulator({ limits: NO_LIMITS }),
    ]);
    const image = await importTagServer(cluster);
    const sitesRepo = join(folder, 'sites.git');
    await initSitesRepo(sitesRepo);
    await mkdir(join(folder, 'own'));
    repo = await openSitesRepo({ url: sitesRepo, cacheDir: join(folder, 'own') });
    const ageIdentity = await generateIdentity();
    const cipher = await encryptSecret(await identityToRecipient(ageIdentity), containerConfig());
    manifest = manifestInput(SITE, 0, {
      image,
      containerConfig: cipher,
      resources: { processing: { replicas: { min: 1, max: 2 } } },
    });
    const start = async (host: Host, env: NodeJS.ProcessEnv) => {
      const own = join(folder, host);
      await mkdir(own);
      const provisioner = await ProvisionerProcess.start({
        ...{ folder: own, sitesRepo, ageIdentity, emulator, secret: 'infra-s3cret' },
        env: {
          TAGYARD_INSTANCE: 'test',
          HOST_NAME: host,
          RECONCILE_INTERVAL_SECONDS: '5',
          // As long as names that were read are still asked at their old address.
          DRAIN_SECONDS: '1',
          DNS_RECORD_MODE: 'site',
          ...env,
        },
      });
      provisioners.set(host, provisioner);
    };
    await start('tag-1', {
      HOST_ADDRESS: ADDRESSES['tag-1'],
      CONTAINERS_DRIVER: 'process',
      LOOPBACK_SUBNET: '127.91',
      PROXY_DRIVER: 'embedded',
      PROXY_LISTEN: '127.0.0.1',
      PROXY_HTTP_PORT: '0',
      PROXY_TLS_PORT: '0',
      EDGE_UPSTREAM: 'http://127.0.0.1:9',
      LOCAL_CA_DIR: join(folder, 'ca'),
    });
    await start('tag-2', {
      HOST_KIND: 'kubernetes',
      KUBECONFIG: cluster.kubeconfig,
      KUBERNETES_ADMIT_CIDRS: '0.0.0.0/0',
      KUBERNETES_GATEWAY_ADDRESS: ADDRESSES['tag-2'],
    });
    ({ tlsPort } = JSON.parse(await readFile(join(folder, 'tag-1/state/proxy/ports.json'), 'utf8')));
    // The machine reaches Services as a balancer in front of the cluster does, through a node.
    const api = await cluster.kubectl('get', 'service', 'kubernetes', '--output=jsonpath={.spec.clusterIP}');
    await ip(`route add ${api.replace(/\.0\.1$/, '.0.0/16')} via ${cluster.nodes[0]?.address}`);
  });
  afterAll(async () => {
    for (const provisioner of provisioners.values()) await provisioner[Symbol.asyncDispose]();
    await emulator?.close();
    await cluster?.[Symbol.asyncDispose]();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  const commit = (input: ManifestInput, subject: string) =>
    repo.commit({
      site: input.site,
      edit: () => formatManifest(input),
      subject,
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
  const moveTo = (host: Host) => commit({ ...manifest, host }, `Move to ${host}`);
  const records = async (): Promise<DnsRecord[]> =>
    (await emulator.call('GET', `/zones/${emulator.zone.id}/dns_records`)).json.result;
  const addressIn = (found: readonly DnsRecord[], role: (typeof ROLES)[number]) =>
    found.find(({ name }) => name === manifest.hostnames[role])?.content;

  /** Asks a host for a name of the site; throws unless the site answers there. */
  async function askAt(host: Host, role: (typeof ROLES)[number]): Promise<void> {
    const name = manifest.hostnames[role];
    if (host === 'tag-1') {
      const endpoint = { address: '127.0.0.1', httpPort: 0, tlsPort };
      const { status } = await ask(endpoint, { host: name, path: '/healthz' });
      if (status !== 200) throw new Error(`status ${status}`);
      return;
    }
    const which = role === 'origin' ? 'processing' : 'preview';
    const service = ['get', 'service', `tag-${SITE}-${which}`, '--namespace', namespace()];
    const address = await cluster.kubectl(...service, '--output=jsonpath={.spec.clusterIP}');
    const { status } = await fetch(`http://${address}:${manifest.ports[which]}/healthz`);
    if (status !== 200) throw new Error(`status ${status}`);
  }

  /** Asks at both names' addresses again and again while the work is done. Returns where nothing answered. */
  async function gapsDuring(work: () => Promise<unknown>): Promise<{ gaps: string[]; seen: Set<string> }> {
    const gaps: string[] = [];
    const seen = new Set<string>();
    let isDone = false;
    const sample = async () => {
      const found = await records();
      for (const role of ROLES) {
        const address = addressIn(found, role);
        const host = HOSTS.find((one) => ADDRESSES[one] === address);
        if (host === undefined) gaps.push(`${role} leads to ${address}`);
        else await askAt(host, role).catch((error: unknown) => gaps.push(`${role} at ${host}: ${error}`));
        seen.add(address ?? '');
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
    await eventually(async () => {
      const shown = (await provisioners.get(host)?.sites())?.sites.find(({ site }) => site === SITE);
      expect([shown?.ready, shown?.reason]).toEqual([true, 'Ready']);
      const now = await records();
      for (const role of ROLES) expect(addressIn(now, role)).toBe(ADDRESSES[host]);
    }, WAIT);
    const owners = (await records()).flatMap(
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

  test('moves to the cluster and back, its names never lead nowhere, and nothing stays behind', async () => {
    // A host that loses its only site would wait for an approval.
    for (const [index, host] of HOSTS.entries()) {
      const own = manifestInput(`stays-${index}`, 1 + index, {
        host,
        client: `7c9e6679-7425-40de-944b-e07fc1f90be${index}`,
      });
      const { image, containerConfig: config, resources } = manifest;
      await commit({ ...own, image, containerConfig: config, resources }, 'Add a site that stays');
    }
    await moveTo('tag-1');
    await isReadyOn('tag-1');
    for (const [from, to] of [
      ['tag-1', 'tag-2'],
      ['tag-2', 'tag-1'],
    ] as const) {
      const { gaps, seen } = await gapsDuring(async () => {
        await moveTo(to);
        await isReadyOn(to);
        await isGoneFrom(from);
      });
      expect(gaps).toEqual([]);
      expect(seen).toEqual(new Set(Object.values(ADDRESSES)));
      for (const role of ROLES) await askAt(to, role);
    }
  });
});
