import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { formatManifest } from '../../../sites/manifest/load.ts';
import { encryptSecret } from '../../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { openSitesRepo } from '../../../sites/repo/sites-repo.ts';
import { EMULATOR_SCRIPT, EMULATOR_TOKEN, EMULATOR_ZONE, startEmulator } from '../cloudflare/emulator.ts';
import { eventually } from '../eventually.ts';
import { CHART, helm, prerequisites, valueFlags } from '../kubernetes/chart.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { importKeptServer } from '../kubernetes/kept-server.ts';
import { manifestInput } from '../manifest.ts';
import { containerConfig } from '../tag-server.ts';
import { writePartImage } from './image.ts';

const NAMESPACE = 'tagyard';
const IMAGE = 'provisioner.test/provisioner';
const HOST = 'cluster-1';
/** The provisioner's site. */
const SITE = 'provisioned';
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };
/** The image's user. */
const USER = 65_532;

/**
 * The provisioner as the chart installs it, with its image built from this tree, and with a site of its own. Needs
 * Docker. The sites repository is on the provisioner's volume, which all nodes of a test's cluster have.
 */
export class ChartProvisioner implements AsyncDisposable {
  readonly #cluster: Cluster;
  readonly #owned: AsyncDisposableStack;

  private constructor(cluster: Cluster, owned: AsyncDisposableStack) {
    this.#cluster = cluster;
    this.#owned = owned;
  }

  /** Resolves when the provisioner's site has a ready pod. */
  static async install(cluster: Cluster): Promise<ChartProvisioner> {
    await using stack = new AsyncDisposableStack();
    const folder = await mkdtemp(join(tmpdir(), 'tagyard-provisioner-'));
    stack.defer(() => rm(folder, { recursive: true, force: true }));
    const file = join(folder, 'provisioner.tar');
    await writePartImage('provisioner', file, folder);
    const digest = await cluster.importByDigest(file, IMAGE);
    const address = new URL(
      await cluster.kubectl('config', 'view', '--output', 'jsonpath={.clusters[0].cluster.server}'),
    ).hostname;
    const emulator = stack.adopt(await startEmulator({ address }), (one) => one.close());

    const identity = await generateIdentity();
    await cluster.kubectl('create', 'namespace', NAMESPACE);
    const settings = {
      INFRA_SECRET: 'a-secret-of-a-test',
      HOP_SECRET: 'a-hop-secret-of-a-test',
      CLOUDFLARE_API_TOKEN: EMULATOR_TOKEN,
      SITES_REPO: '/var/lib/tagyard/sites.git',
    };
    const items = await prerequisites(cluster, NAMESPACE, { identity, settings });
    await cluster.apply({ apiVersion: 'v1', kind: 'List', items });
    const volume = join(cluster.folder, 'provisioner');
    const bare = join(volume, 'sites.git');
    await initSitesRepo(bare);
    const repo = await openSitesRepo({ url: bare, cacheDir: folder });
    const manifest = manifestInput(SITE, 9, {
      host: HOST,
      image: await importKeptServer(cluster),
      containerConfig: await encryptSecret(await identityToRecipient(identity), containerConfig()),
      resources: { processing: { replicas: { min: 1, max: 2 } } },
    });
    await repo.commit({
      site: SITE,
      edit: () => formatManifest(manifest),
      subject: 'Add a site',
      author: { name: 'Op', email: 'op@example.test' },
      trailers: {},
    });
    execFileSync('chown', ['--recursive', `${USER}:${USER}`, volume]);
    await helm(
      ...['install', 'tagyard', CHART, '--namespace', NAMESPACE, '--kubeconfig', cluster.kubeconfig],
      ...valueFlags({
        image: { repository: IMAGE, digest },
        instance: 'test',
        host: HOST,
        settings: {
          EDGE_DOMAIN: EMULATOR_ZONE,
          EDGE_SCRIPT_NAME: EMULATOR_SCRIPT,
          EDGE_UPSTREAM: 'http://192.0.2.1',
          CLOUDFLARE_API_URL: emulator.url,
          CLOUDFLARE_ACCOUNT_ID: emulator.account,
          CLOUDFLARE_ZONE_ID: emulator.zone.id,
          CLOUDFLARE_RATE: 1000,
          KUBERNETES_ADMIT_CIDRS: '0.0.0.0/0',
          KUBERNETES_GATEWAY_ADDRESS: '198.51.100.9',
        },
      }),
    );
    const provisioner = new ChartProvisioner(cluster, stack.move());
    await eventually(() => provisioner.#servesSite(manifest.client), WAIT).catch(async (cause) => {
      const log = await provisioner.#log();
      await provisioner[Symbol.asyncDispose]();
      throw new Error(`the provisioner doesn’t apply its site: ${log}`, { cause });
    });
    return provisioner;
  }

  /** Moves the provisioner to this node. */
  async moveTo(node: string): Promise<void> {
    const nodeSelector = { 'kubernetes.io/hostname': node };
    const patch = JSON.stringify({ spec: { template: { spec: { nodeSelector } } } });
    const names = ['deployment', 'tagyard', '--namespace', NAMESPACE];
    await this.#cluster.kubectl('patch', ...names, '--type=merge', '--patch', patch);
    await this.#cluster.kubectl('rollout', 'status', ...names, '--timeout=180s');
  }

  async #servesSite(client: string): Promise<void> {
    const ready = await this.#cluster.kubectl(
      ...['get', 'deployment', `tag-${SITE}-processing`, '--namespace', `tagyard-test-${client}`],
      '--output=jsonpath={.status.readyReplicas}',
    );
    if (ready !== '1') throw new Error('the pod of its site isn’t ready');
  }

  async #log(): Promise<string> {
    return await this.#cluster
      .kubectl('logs', 'deployment/tagyard', '--namespace', NAMESPACE, '--tail=20')
      .catch(String);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#owned.disposeAsync();
  }
}
