import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatManifest } from '../../sites/manifest/load.ts';
import { encryptSecret } from '../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import { startEmulator, type TestEmulator } from '../support/cloudflare/emulator.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { tokenKubeconfig } from '../support/kubernetes/call-as.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { ProvisionerProcess } from '../support/kubernetes/provisioner.ts';
import { manifestInput } from '../support/manifest.ts';
import { containerConfig } from '../support/tag-server.ts';

const SECRET = 'infra-s3cret-for-tests';
/** The account of all pods, except those of another installation. */
const ACCOUNT = 'tagyard';
const WAIT = { timeoutMs: 60_000, intervalMs: 50 };
const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/**
 * Pods as processes, each with a state folder and a token of its own, an emulated Cloudflare, and a control plane without
 * nodes: objects are made, and no pod starts.
 */
describeWith(['kubernetes', 'root'], 'pods of the provisioner that follow each other', () => {
  let cluster: Cluster;
  let emulator: TestEmulator;
  let folder: string;
  let bare: string;
  let repo: SitesRepo;
  let ageIdentity: string;
  let one: ProvisionerProcess;
  let two: ProvisionerProcess;
  const started: ProvisionerProcess[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tagyard-successors-'));
    bare = join(folder, 'sites.git');
    [cluster, emulator, ageIdentity] = await Promise.all([
      Cluster.start({ nodes: 0 }),
      startEmulator(),
      generateIdentity(),
      initSitesRepo(bare),
    ]);
    repo = await openSitesRepo({ url: bare, cacheDir: folder });
    for (const account of [ACCOUNT, 'other']) {
      const binding = ['--clusterrole=cluster-admin', `--serviceaccount=default:${account}`];
      await cluster.kubectl('create', 'serviceaccount', account);
      await cluster.kubectl('create', 'clusterrolebinding', account, ...binding);
    }
    await commit('site-0');
    one = await pod('one');
  });
  afterAll(async () => {
    for (const each of started) {
      each.thaw();
      await each.kill();
    }
    await emulator?.close();
    await cluster?.[Symbol.asyncDispose]();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true, maxRetries: 10 });
  });

  const author = { name: 'Op', email: 'op@example.test' };
  async function commit(site: string, what: 'present' | 'removed' = 'present'): Promise<void> {
    const recipient = await identityToRecipient(ageIdentity);
    const containerConfigText = await encryptSecret(recipient, containerConfig());
    const manifest = manifestInput(site, Number(site.split('-')[1]), {
      containerConfig: containerConfigText,
    });
    const edit = () => (what === 'removed' ? null : formatManifest(manifest));
    await repo.commit({ site, edit, subject: `Change ${site}`, author, trailers: {} });
  }

  /** A kubeconfig with a token of this account; `pod`: of a pod of this name. */
  async function kubeconfigOf(account: string, pod: string | null): Promise<string> {
    if (pod !== null) {
      await cluster.apply({
        ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: pod, namespace: 'default' } },
        spec: { serviceAccountName: account, containers: [{ name: 'provisioner', image: 'none.test/none' }] },
      });
    }
    const bound = pod === null ? [] : ['--bound-object-kind=Pod', `--bound-object-name=${pod}`];
    const token = await cluster.kubectl('create', 'token', account, ...bound);
    return await tokenKubeconfig(cluster, pod ?? 'outside', token);
  }

  /** Starts a provisioner with the state folder of its name, and with the token of a pod of that name. */
  async function pod(name: string, { account = ACCOUNT, isInPod = true } = {}): Promise<ProvisionerProcess> {
    const own = join(folder, name);
    await mkdir(own, { recursive: true });
    const process = await ProvisionerProcess.start({
      ...{ folder: own, sitesRepo: pathToFileURL(bare).href, ageIdentity, emulator, secret: SECRET },
      env: {
        TAGYARD_INSTANCE: 'test',
        HOST_NAME: 'tag-1',
        HOST_KIND: 'kubernetes',
        KUBECONFIG: await kubeconfigOf(account, isInPod ? name : null),
        KUBERNETES_GATEWAY_ADDRESS: '198.51.100.9',
        RECONCILE_INTERVAL_SECONDS: '2',
        FREEZE_FILE: join(folder, 'frozen'),
      },
    });
    started.push(process);
    return process;
  }

  /** The pods that have written objects, in the order of writing, without direct repetitions. */
  function writers(): string[] {
    const pods = cluster
      .requests()
      .filter(({ verb }) => WRITES.has(verb))
      .flatMap(({ pod }) => pod ?? []);
    return pods.filter((pod, index) => pod !== pods[index - 1]);
  }
  const deployments = async () => {
    const names = 'jsonpath={range .items[*]}{.metadata.name} {end}';
    const listed = await cluster.kubectl('get', 'deployments', '--all-namespaces', '--output', names);
    return listed.split(' ').filter(Boolean).toSorted();
  };
  /** Resolves when the cluster has the Deployments of exactly these sites. */
  const become = (...sites: number[]) =>
    eventually(
      async () =>
        expect(await deployments()).toEqual(
          sites.flatMap((site) => [`tag-site-${site}-preview`, `tag-site-${site}-processing`]).toSorted(),
        ),
      WAIT,
    );
  const git = (...args: string[]) => execFileSync('git', ['-C', bare, ...args], { encoding: 'utf8' }).trim();
  const refused = /another daemon acts as the host tag-1: .*HOST_TAKEOVER_TERM=\d/;

  test('a daemon outside of pods and a pod of another installation are refused', async () => {
    await become(0);
    await expect(pod('outside', { isInPod: false })).rejects.toThrow(refused);
    await expect(pod('foreign', { account: 'other' })).rejects.toThrow(refused);
    expect(writers()).toEqual(['one']);
  });

  test('a pod that is stopped during its writes is replaced, and writes no more when it continues', async () => {
    const sites = [1, 2, 3, 4, 5, 6, 7, 8];
    await Promise.all(sites.map((site) => commit(`site-${site}`)));
    // Waits until some of the Deployments are made, while others aren't.
    await eventually(async () => expect((await deployments()).length).toBeGreaterThan(2), {
      ...WAIT,
      intervalMs: 5,
    });
    one.freeze();
    two = await pod('two');
    await become(0, ...sites);
    await commit('site-9');
    await become(0, ...sites, 9);
    one.thaw();
    await eventually(async () => {
      expect((await one.sites()).problem).toMatch(refused);
    }, WAIT);
    await commit('site-1', 'removed');
    await become(0, 2, 3, 4, 5, 6, 7, 8, 9);
    expect(writers().at(-1)).toBe('two');
    // Its container may restart where the cluster can't reach it.
    await one.kill();
    await expect(pod('one')).rejects.toThrow(refused);
    const terms = git('log', '--format=%(trailers:key=Term,valueonly)', 'refs/tagyard/hosts/tag-1');
    expect(terms.split(/\n+/)).toEqual(['2', '1']);
  });

  test('a pod without a state removes only what git no longer has, and needs no approval for that', async () => {
    await two.kill();
    await commit('site-2', 'removed');
    await commit('site-10');
    const three = await pod('three');
    await become(0, 3, 4, 5, 6, 7, 8, 9, 10);
    await three.stop();
    expect(writers().slice(-1)).toEqual(['three']);
  });

  test('a pod without a state doesn’t take a missing branch for an empty one', async () => {
    const tip = git('rev-parse', 'refs/heads/main');
    git('update-ref', '-d', 'refs/heads/main');
    const four = await pod('four');
    await eventually(async () => expect((await four.call('GET', '/readyz')).status).toBe(200), WAIT);
    await become(0, 3, 4, 5, 6, 7, 8, 9, 10);
    git('update-ref', 'refs/heads/main', tip);
    await commit('site-11');
    await become(0, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    expect(writers().at(-1)).toBe('four');
  });

  // The fence against an old pod that can't read git, and so doesn't find that it was replaced.
  test('the API server refuses the token of a pod that is being deleted', async () => {
    const kubeconfig = await kubeconfigOf(ACCOUNT, 'gone');
    const call = () => cluster.kubectl('get', 'namespaces', '--kubeconfig', kubeconfig);
    expect(await call()).toContain('default');
    // An unscheduled pod would be gone at once.
    const kept = JSON.stringify({ metadata: { finalizers: ['test.test/kept'] } });
    await cluster.kubectl('patch', 'pod', 'gone', '--type=merge', '--patch', kept);
    await cluster.kubectl('delete', 'pod', 'gone', '--wait=false');
    await eventually(async () => await expect(call()).rejects.toThrow(/logged in|Unauthorized/), {
      ...WAIT,
      timeoutMs: 120_000,
    });
  });

  test('FREEZE_FILE stops all changes, also those of the next pod', async () => {
    await writeFile(join(folder, 'frozen'), 'an audit');
    await started.at(-1)?.stop();
    await commit('site-12');
    const five = await pod('five');
    await eventually(async () => {
      const site = (await five.sites()).sites.find((one) => one.site === 'site-12');
      expect(site?.message).toMatch(/frozen stops all changes: an audit/);
    }, WAIT);
    await become(0, 3, 4, 5, 6, 7, 8, 9, 10, 11);
    await rm(join(folder, 'frozen'));
    await become(0, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
  });
});
