import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { formatManifest } from '../../sites/manifest/load.ts';
import { encryptSecret } from '../../sites/manifest/secrets.ts';
import { initSitesRepo } from '../../sites/repo/mirror.ts';
import { openSitesRepo, type SitesRepo } from '../../sites/repo/sites-repo.ts';
import { startEmulator, type TestEmulator } from '../support/cloudflare/emulator.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { ProvisionerProcess } from '../support/kubernetes/provisioner.ts';
import { manifestInput } from '../support/manifest.ts';
import { containerConfig } from '../support/tag-server.ts';

const SECRET = 'infra-s3cret-for-tests';
const LEASE = 'default/leader';
/** The Lease's duration. */
const SECONDS = 6;
const WAIT = { timeoutMs: 60_000, intervalMs: 50 };
const codeOf = (body: unknown) => z.object({ code: z.string() }).parse(body).code;
const WRITES = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

/**
 * Replicas as processes with state folders and accounts of their own, an emulated Cloudflare, and a control plane without
 * nodes: objects are made, and no pod starts.
 */
describeWith(['kubernetes', 'root'], 'replicas of the provisioner', () => {
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
    folder = await mkdtemp(join(tmpdir(), 'tagyard-replicas-'));
    bare = join(folder, 'sites.git');
    [cluster, emulator, ageIdentity] = await Promise.all([
      Cluster.start({ nodes: 0 }),
      startEmulator(),
      generateIdentity(),
      initSitesRepo(bare),
    ]);
    repo = await openSitesRepo({ url: bare, cacheDir: folder });
    await commit('site-0');
    one = await replica('one');
    await one.ready;
    two = await replica('two');
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
  async function manifestOf(site: string) {
    const recipient = await identityToRecipient(ageIdentity);
    const containerConfigText = await encryptSecret(recipient, containerConfig());
    return manifestInput(site, Number(site.split('-')[1]), { containerConfig: containerConfigText });
  }
  async function commit(site: string, what: 'present' | 'removed' = 'present'): Promise<void> {
    const text = what === 'removed' ? null : formatManifest(await manifestOf(site));
    const edit = () => text;
    await repo.commit({ site, edit, subject: `Change ${site}`, author, trailers: {} });
  }

  /** The kubeconfig of a new account with this name, by which the audit log shows who wrote. */
  async function kubeconfigOf(account: string): Promise<string> {
    const file = join(cluster.folder, `${account}.kubeconfig`);
    const config = JSON.parse(await readFile(cluster.kubeconfig, 'utf8'));
    await cluster.kubectl('create', 'serviceaccount', account);
    const binding = ['--clusterrole=cluster-admin', `--serviceaccount=default:${account}`];
    await cluster.kubectl('create', 'clusterrolebinding', account, ...binding);
    const token = (await cluster.kubectl('create', 'token', account)).trim();
    config.users = config.users.map(({ name }: { name: string }) => ({ name, user: { token } }));
    await writeFile(file, JSON.stringify(config));
    return file;
  }

  /** Starts a replica with a state folder and an account of its name. */
  async function replica(name: string, env: NodeJS.ProcessEnv = {}): Promise<ProvisionerProcess> {
    const own = join(folder, name);
    await mkdir(own, { recursive: true });
    const kubeconfig = join(cluster.folder, `${name}.kubeconfig`);
    const process = await ProvisionerProcess.start({
      ...{ folder: own, sitesRepo: pathToFileURL(bare).href, ageIdentity, emulator, secret: SECRET },
      env: {
        TAGYARD_INSTANCE: 'test',
        HOST_NAME: 'tag-1',
        HOST_KIND: 'kubernetes',
        KUBECONFIG: await readFile(kubeconfig).then(
          () => kubeconfig,
          () => kubeconfigOf(name),
        ),
        KUBERNETES_GATEWAY_ADDRESS: '198.51.100.9',
        KUBERNETES_LEASE: LEASE,
        KUBERNETES_LEASE_SECONDS: String(SECONDS),
        KUBERNETES_POD_ADDRESS: '127.0.0.1',
        RECONCILE_INTERVAL_SECONDS: '2',
        ...env,
      },
    });
    started.push(process);
    return process;
  }

  /** The accounts that have written objects other than Leases, in the order of writing, without direct repetitions. */
  function writers(): string[] {
    const users = cluster
      .requests()
      .filter(({ verb, resource }) => WRITES.has(verb) && resource !== 'leases')
      .flatMap(({ user }) => /^system:serviceaccount:default:(.+)$/.exec(user)?.[1] ?? []);
    return users.filter((user, index) => user !== users[index - 1]);
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
  const lease = async () => JSON.parse(await cluster.kubectl('get', 'lease', 'leader', '--output', 'json'));
  const git = (...args: string[]) => execFileSync('git', ['-C', bare, ...args], { encoding: 'utf8' }).trim();

  test('one leads and applies; the other says who leads, and applies nothing', async () => {
    await become(0);
    expect(writers()).toEqual(['one']);
    const [name] = (await lease()).spec.holderIdentity.split('@');
    await eventually(async () => {
      const health = await (await two.call('GET', '/healthz', '')).json();
      expect(health).toEqual({ status: 'standby', leader: name });
    });
    expect(await (await one.call('GET', '/healthz', '')).json()).toEqual({ status: 'ok' });
  });

  test('requests to the replica that doesn’t lead are answered by the leader, but only with the secret', async () => {
    const direct = await one.sites();
    expect((await two.sites()).sites.map(({ site }) => site)).toEqual(direct.sites.map(({ site }) => site));
    const answer = await two.call('POST', '/sync');
    expect(answer.status).toBe(202);
    expect((await two.call('GET', '/sites', 'wrong')).status).toBe(401);
    const missing = await two.call('GET', '/nowhere');
    expect([missing.status, codeOf(await missing.json())]).toEqual([404, 'not_found']);
    const looped = await fetch(`${two.url}/sites`, {
      headers: { 'x-secret': SECRET, 'x-tagyard-forwarded': '1' },
    });
    expect([looped.status, looped.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await looped.json()).toMatchObject({
      code: 'not_leading',
      detail: expect.stringMatching(/leads$/),
    });
  });

  test('a daemon elsewhere with the same HOST_NAME is refused, whether it has another Lease or none', async () => {
    await expect(replica('elsewhere', { KUBERNETES_LEASE: '' })).rejects.toThrow(
      /another daemon acts as the host tag-1: .*HOST_TAKEOVER_TERM=1/,
    );
    const other = await replica('elsewhere', { KUBERNETES_LEASE: 'default/other' });
    expect(await other.exited).toMatchObject({
      code: 1,
      errors: expect.stringContaining('another daemon acts as the host tag-1'),
    });
    expect(writers()).toEqual(['one']);
  });

  test('a leader whose process was stopped during its writes doesn’t write again when it continues, and ends', async () => {
    const sites = [1, 2, 3, 4, 5, 6, 7, 8];
    await Promise.all(sites.map((site) => commit(`site-${site}`)));
    // Waits until some of the Deployments are made, while others aren't.
    await eventually(async () => expect((await deployments()).length).toBeGreaterThan(2), {
      ...WAIT,
      intervalMs: 5,
    });
    one.freeze();
    await two.ready;
    await become(0, ...sites);
    await commit('site-9');
    await become(0, ...sites, 9);
    one.thaw();
    expect(await one.exited).toMatchObject({ code: 1, errors: expect.stringMatching(/no longer held/) });
    expect(writers()).toEqual(['one', 'two']);
  });

  test('a killed leader is replaced by one with an older state, which removes only what git no longer has', async () => {
    one = await replica('one');
    expect(await (await one.call('GET', '/healthz', '')).json()).toMatchObject({ status: 'standby' });
    await two.kill();
    await commit('site-1', 'removed');
    await one.ready;
    await become(0, 2, 3, 4, 5, 6, 7, 8, 9);
    expect(writers()).toEqual(['one', 'two', 'one']);
    expect(git('log', '--format=%(trailers:key=Term,valueonly)', 'refs/tagyard/hosts/tag-1')).toMatch(
      /^1\n+1\n+1$/,
    );
  });

  test('a new leader with an empty state doesn’t take a missing branch for an empty one', async () => {
    const three = await replica('three');
    const tip = git('rev-parse', 'refs/heads/main');
    await eventually(async () =>
      expect((await lease()).metadata.annotations).toEqual({ 'tagyard/revision': tip }),
    );
    git('update-ref', '-d', 'refs/heads/main');
    await one.stop();
    await three.ready;
    await eventually(async () => {
      expect((await three.sites()).problem).toMatch(/the branch of the sites repository is gone/);
    }, WAIT);
    const provision = await fetch(`${three.url}/provision`, {
      method: 'POST',
      headers: { 'x-secret': SECRET, 'content-type': 'application/json' },
      body: JSON.stringify(await manifestOf('site-20')),
    });
    expect([provision.status, codeOf(await provision.json())]).toEqual([503, 'sites_repo_unavailable']);
    await become(0, 2, 3, 4, 5, 6, 7, 8, 9);
    git('update-ref', 'refs/heads/main', tip);
    await commit('site-10');
    await become(0, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    expect(writers().slice(0, 3)).toEqual(['one', 'two', 'one']);
    expect(writers().at(-1)).toBe('three');
  });

  test('an annotation of the Lease stops all changes', async () => {
    await cluster.kubectl('annotate', 'lease', 'leader', 'tagyard/freeze=an audit');
    // The leader reads the annotation with its next renewal.
    const { renewTime } = (await lease()).spec;
    await eventually(async () => expect((await lease()).spec.renewTime).not.toBe(renewTime));
    const three = started.at(-1);
    await commit('site-11');
    await eventually(async () => {
      const site = (await three?.sites())?.sites.find((one) => one.site === 'site-11');
      expect(site?.message).toMatch(
        /the annotation tagyard\/freeze of the Lease leader stops all changes: an audit/,
      );
    }, WAIT);
    await cluster.kubectl('annotate', 'lease', 'leader', 'tagyard/freeze-');
    await become(0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11);
  });
});
