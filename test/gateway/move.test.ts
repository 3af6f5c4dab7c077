import { cp, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatManifest } from '../../gitops/manifest/load.ts';
import type { ManifestInput } from '../../gitops/manifest/schema.ts';
import { encryptSecret } from '../../gitops/manifest/secrets.ts';
import { initSitesRepo } from '../../gitops/sites-repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../gitops/sites-repo/sites-repo.ts';
import {
  EMULATOR_ZONE,
  NO_LIMITS,
  startEmulator,
  type TestEmulator,
} from '../support/cloudflare/emulator.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { renderLoad, startEdgeLoad } from '../support/gateway/edge-load.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage } from '../support/gateway/stage.ts';
import { importKeptServer } from '../support/kubernetes/kept-server.ts';
import { ProvisionerProcess } from '../support/kubernetes/provisioner.ts';
import { manifestInput } from '../support/manifest.ts';
import { containerConfig } from '../support/tag-server.ts';

const SITE = 'acme-shop';
/** The first is a machine, the second the cluster. */
const HOSTS = ['tag-1', 'tag-2'] as const;
type Host = (typeof HOSTS)[number];
const ADDRESSES: Readonly<Record<Host, string>> = { 'tag-1': '198.51.100.4', 'tag-2': '198.51.100.9' };
const PER_SECOND = 20;
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };

/** A provisioner of a machine and one of a cluster with a gateway, with one age identity and one Cloudflare. */
describeWith(['kubernetes', 'root', 'nginx'], 'a site that moves to a cluster under load', () => {
  let folder: string;
  let stage: GatewayStage;
  let gateway: GatewayProcess;
  let emulator: TestEmulator;
  let repo: SitesRepo;
  let manifest: ManifestInput;
  let machinePort: number;
  const provisioners = new Map<Host, ProvisionerProcess>();
  let startCluster: () => Promise<void>;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tagyard-gateway-move-'));
    [stage, emulator] = await Promise.all([
      GatewayStage.start({ nodes: 1 }),
      // What the names' addresses are asked counts as well.
      startEmulator({ limits: NO_LIMITS }),
    ]);
    const image = await importKeptServer(stage.cluster);
    const tls = join(folder, 'tls');
    await mkdir(tls);
    const pair = await stage.ca.pathsFor(`*.${EMULATOR_ZONE}`);
    await cp(pair.cert, join(tls, `_.${EMULATOR_ZONE}.pem`));
    await cp(pair.key, join(tls, `_.${EMULATOR_ZONE}.key`));
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
      await mkdir(own, { recursive: true });
      const provisioner = await ProvisionerProcess.start({
        ...{ folder: own, sitesRepo, ageIdentity, emulator, secret: 'infra-s3cret' },
        env: {
          TAGYARD_INSTANCE: 'test',
          HOST_NAME: host,
          RECONCILE_INTERVAL_SECONDS: '5',
          // Longer than the edge of this test keeps an address.
          DRAIN_SECONDS: '2',
          DNS_RECORD_MODE: 'site',
          EDGE_UPSTREAM: 'http://127.0.0.1:9',
          ...env,
        },
      });
      provisioners.set(host, provisioner);
    };
    await start('tag-1', {
      HOST_ADDRESS: ADDRESSES['tag-1'],
      CONTAINERS_DRIVER: 'process',
      LOOPBACK_SUBNET: '127.92',
      PROXY_DRIVER: 'embedded',
      PROXY_LISTEN: '127.0.0.1',
      PROXY_HTTP_PORT: '0',
      PROXY_TLS_PORT: '0',
      LOCAL_CA_DIR: join(folder, 'ca'),
    });
    startCluster = () =>
      start('tag-2', {
        HOST_KIND: 'kubernetes',
        KUBECONFIG: stage.cluster.kubeconfig,
        KUBERNETES_GATEWAY_NAMESPACE: GATEWAYS,
        KUBERNETES_GATEWAY_ADDRESS: ADDRESSES['tag-2'],
        TLS_DIR: tls,
      });
    await startCluster();
    const ports = JSON.parse(await readFile(join(folder, 'tag-1/state/proxy/ports.json'), 'utf8'));
    machinePort = ports.tlsPort;
    // A host that loses its only site would wait for an approval.
    for (const [index, host] of HOSTS.entries()) {
      const own = manifestInput(`stays-${index}`, 1 + index, {
        host,
        client: `7c9e6679-7425-40de-944b-e07fc1f90be${index}`,
      });
      const { containerConfig: config, resources } = manifest;
      await commit({ ...own, image, containerConfig: config, resources }, 'Add a site that stays');
    }
    gateway = await stage.gateway('gateway-1');
    await gateway.start();
  });
  afterAll(async () => {
    for (const provisioner of provisioners.values()) await provisioner[Symbol.asyncDispose]();
    await emulator?.close();
    await stage?.[Symbol.asyncDispose]();
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

  /** Where the origin's name leads. */
  async function currentHost(): Promise<Host | undefined> {
    const { json } = await emulator.call('GET', `/zones/${emulator.zone.id}/dns_records`);
    const records = json.result as { name: string; content: string }[];
    const address = records.find(({ name }) => name === manifest.hostnames.origin)?.content;
    return HOSTS.find((host) => ADDRESSES[host] === address);
  }

  const isReadyOn = (host: Host) =>
    eventually(async () => {
      const shown = (await provisioners.get(host)?.sites())?.sites.find(({ site }) => site === SITE);
      expect([shown?.ready, shown?.reason]).toEqual([true, 'Ready']);
      expect(await currentHost()).toBe(host);
    }, WAIT);

  /** Sends requests to where the name leads, as the edge does, which keeps an address for up to a second. */
  async function underLoad(work: (isSent: (seconds: number) => Promise<void>) => Promise<unknown>) {
    let known: Host | undefined = await currentHost();
    const seen = new Set([known]);
    let isDone = false;
    const following = eventually(
      async () => {
        known = await currentHost();
        seen.add(known);
        if (!isDone) throw new Error('the work isn’t done');
      },
      { timeoutMs: 600_000, intervalMs: 200 },
    );
    const { origin } = manifest.hostnames;
    const load = startEdgeLoad(
      () => {
        const port = known === 'tag-1' ? machinePort : gateway.endpoint.tlsPort;
        return { address: '127.0.0.1', port, servername: origin };
      },
      origin,
      PER_SECOND,
    );
    try {
      await work((seconds) => {
        const from = load.now();
        return eventually(() => expect(load.now() - from).toBeGreaterThan(seconds), WAIT);
      });
    } finally {
      isDone = true;
      await following;
      await load.end();
    }
    const report = await load.end();
    process.stdout.write(`${renderLoad(report)}\n`);
    return { ...report, seen: [...seen] };
  }

  test('is moved there and back, and no request fails', async () => {
    await commit({ ...manifest, host: 'tag-1' }, 'Add the site');
    await isReadyOn('tag-1');
    for (const [from, to] of [
      ['tag-1', 'tag-2'],
      ['tag-2', 'tag-1'],
    ] as const) {
      const { failures, sent, seen } = await underLoad(async () => {
        await commit({ ...manifest, host: to }, `Move to ${to}`);
        await isReadyOn(to);
        await eventually(async () => {
          const left = (await provisioners.get(from)?.sites())?.sites.find(({ site }) => site === SITE);
          expect(left?.reason ?? 'Removed').toBe('Removed');
        }, WAIT);
      });
      expect(failures).toEqual([]);
      expect(sent).toBeGreaterThan(PER_SECOND);
      expect(seen).toHaveLength(2);
    }
  });

  test('is served on when the provisioner ends without notice, and after its return', async () => {
    await commit({ ...manifest, host: 'tag-2' }, 'Move to tag-2');
    await isReadyOn('tag-2');
    const { failures, sent } = await underLoad(async (isSent) => {
      await provisioners.get('tag-2')?.kill();
      await isSent(3);
      await startCluster();
      await isReadyOn('tag-2');
    });
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(PER_SECOND);
  });
});
