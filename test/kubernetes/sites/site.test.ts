import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PartCheck } from '../../../gitops/report/report.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { EMULATOR_ZONE, startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { describeWith } from '../../support/components.ts';
import { startEdgeAnswers } from '../../support/edge-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { stopInPod } from '../../support/kubernetes/pod-process.ts';
import { ProvisionerProcess } from '../../support/kubernetes/provisioner.ts';
import { importTagServer } from '../../support/kubernetes/sites.ts';
import { creation, SECRET, World } from '../../support/management/world.ts';

/** The host on which the API creates sites. */
const HOST = 'tag-1';
/** The address to which names lead; no test connects to it. */
const GATEWAY = '198.51.100.9';
const WAIT = { timeoutMs: 180_000, intervalMs: 100 };

/** Takes connections, and has the label of the cluster's name servers. */
const NAME_SERVER = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'name-server', namespace: 'kube-system', labels: { 'k8s-app': 'kube-dns' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [
      {
        name: 'name-server',
        image: 'tag-server.test/tag-server:1',
        imagePullPolicy: 'Never',
        command: ['/bin/busybox', 'nc', '-ll', '-p', '53', '-e', '/bin/busybox', 'true'],
      },
    ],
  },
};

/** The API, the provisioner as a process, an emulated Cloudflare and a real cluster. */
describeWith(['kubernetes', 'root'], 'a site in a cluster', () => {
  let cluster: Cluster;
  let emulator: TestEmulator;
  let provisioner: ProvisionerProcess;
  let world: World;
  let folder: string;
  let client: string;
  let id: string;
  let site: string;
  let edge: Awaited<ReturnType<typeof startEdgeAnswers>>;
  /** The client's namespace. */
  let namespace: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tagyard-cluster-site-'));
    [cluster, emulator] = await Promise.all([Cluster.start({ nodes: 2 }), startEmulator()]);
    const image = await importTagServer(cluster);
    const sitesRepo = join(folder, 'sites.git');
    await initSitesRepo(sitesRepo);
    const ageIdentity = await generateIdentity();
    edge = await startEdgeAnswers(emulator);
    provisioner = await ProvisionerProcess.start({
      ...{ folder, sitesRepo, ageIdentity, emulator, secret: SECRET },
      env: {
        TAGYARD_INSTANCE: 'test',
        HOST_NAME: HOST,
        HOST_KIND: 'kubernetes',
        KUBECONFIG: cluster.kubeconfig,
        KUBERNETES_ADMIT_CIDRS: '203.0.113.0/24',
        // Only a pass over all sites removes a client's namespace.
        RECONCILE_INTERVAL_SECONDS: '5',
        KUBERNETES_GATEWAY_ADDRESS: GATEWAY,
        ...edge.env,
      },
    });
    world = await World.open({
      bare: sitesRepo,
      daemon: { url: provisioner.url, secret: SECRET },
      logLevel: 'warn',
      settings: {
        host: HOST,
        image,
        edgeDomain: EMULATOR_ZONE,
        originDomain: EMULATOR_ZONE,
        ageRecipient: await identityToRecipient(ageIdentity),
      },
    });
    client = await world.client();
    namespace = `tagyard-test-${client}`;
  });
  afterAll(async () => {
    await world?.close();
    await provisioner?.[Symbol.asyncDispose]();
    await edge?.close();
    await emulator?.close();
    await cluster?.[Symbol.asyncDispose]();
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  });

  const call = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', path: string, body?: object) =>
    world.call(method, path, { as: 'owner', ...(body === undefined ? {} : { body }) });
  const container = async () => (await call('GET', `/server-containers/${id}`)).body;
  async function becomes(status: string): Promise<void> {
    await eventually(async () => {
      const { status: found, statusReason } = await container();
      expect([found, found === status ? null : statusReason]).toEqual([status, null]);
    }, WAIT);
  }
  const statusOf = async () => (await provisioner.sites()).sites.find((one) => one.site === site);
  const get = async (...args: string[]) =>
    JSON.parse(await cluster.kubectl('get', '--namespace', namespace, '--output', 'json', ...args));
  /** What a pod of the site gets from one of its Services. */
  const ask = async (role: string) => {
    const { spec } = await get('service', `tag-${site}-${role}`);
    const [{ port }] = spec.ports;
    const [pod] = (await get('pods', '--selector', 'tagyard/role=processing')).items;
    const request = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /bin/busybox nc -w 5 ${spec.clusterIP} ${port}`;
    return await cluster.kubectl(
      ...['exec', '--namespace', namespace, pod.metadata.name, '--'],
      ...['/bin/busybox', 'sh', '-c', request],
    );
  };

  test('is created by the API: its pods run on different nodes, its Services answer', async () => {
    const { status, body } = await call('POST', '/server-containers', creation(client));
    expect(status).toBe(202);
    id = body.id;
    site = body.siteId;
    await becomes('active');
    const pods = (await get('pods', '--selector', 'tagyard/role=processing')).items;
    expect(pods).toHaveLength(2);
    expect(new Set(pods.map((pod: { spec: { nodeName: string } }) => pod.spec.nodeName)).size).toBe(2);
    await eventually(async () => {
      expect(await ask('processing')).toContain('id=GTM-SRV12345');
      expect(await ask('preview')).toContain('id=GTM-SRV12345');
    }, WAIT);
    const records = await emulator.call('GET', `/zones/${emulator.zone.id}/dns_records`);
    expect(records.json.result).toContainEqual(
      expect.objectContaining({ name: body.hostnames.origin, type: 'A', content: GATEWAY }),
    );
  });

  test('is shown with its objects and pods by the API', async () => {
    expect((await statusOf())?.ready).toBe(true);
    const { body } = await call('GET', `/server-containers/${id}/resources`);
    expect(JSON.stringify(body)).toContain(`Deployment/tag-${site}-processing`);
  });

  test('is reported with its names, its preview and its configuration', async () => {
    const answer = await fetch(`${provisioner.url}/sites/${site}/host-report`, {
      headers: { 'x-secret': SECRET },
    });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({
      host: HOST,
      previews: { count: 1, problem: null },
      config: { problem: null },
    });
  });

  test('lets a check prove, by a forbidden connection, whether its policies are enforced', async () => {
    const check = async () => {
      const answer = await fetch(`${provisioner.url}/health`, { headers: { 'x-secret': SECRET } });
      const { checks } = (await answer.json()) as { checks: PartCheck[] };
      return checks.find(({ name }) => name === 'network_policies');
    };
    // In the cluster of the tests, nothing enforces them.
    expect(await check()).toMatchObject({
      status: 'failed',
      detail: expect.stringMatching(/^not enforced: .*-processing-.* takes a connection from 198\.18\./),
      fix: expect.stringContaining('Enable the enforcement'),
    });
    const { spec } = await get('service', `tag-${site}-processing`);
    const [{ port }] = spec.ports;
    const machine = cluster.nodes[0]?.address.replace(/\d+$/, '1') ?? '';
    for (const node of cluster.nodes) await node.refuse(machine, port);
    expect(await check()).toMatchObject({
      status: 'skipped',
      detail: 'unproven: this process reaches no pod of the cluster',
    });
    await cluster.create(NAME_SERVER);
    await eventually(async () => {
      expect(await check()).toMatchObject({
        status: 'passed',
        detail: expect.stringMatching(/^enforced: .* refuses .*, and kube-system\/name-server doesn’t$/),
      });
    }, WAIT);
    for (const node of cluster.nodes) await node.refuse(machine, port, '--delete');
    expect((await check())?.status).toBe('failed');
  });

  test('says within 30 s that its processes hang, and serves again once their nodes have restarted them', async () => {
    await eventually(async () => expect((await statusOf())?.ready).toBe(true), WAIT);
    const ofRole = async (role: string) => (await get('pods', '--selector', `tagyard/role=${role}`)).items[0];
    const names: string[] = [];
    for (const role of ['processing', 'preview']) {
      const { name } = (await ofRole(role)).metadata;
      names.push(name);
      await stopInPod(name, 'httpd');
    }
    await eventually(
      async () => {
        const { ready, reason, message } = (await statusOf()) ?? {};
        expect([ready, reason]).toEqual([false, 'Unhealthy']);
        for (const name of names) expect(message).toContain(`the pod ${name} doesn’t serve since`);
        expect(message).toContain('it fails its health check, GET /healthz');
      },
      { timeoutMs: 30_000, intervalMs: 100 },
    );
    const hostEvents = async () => {
      const { body } = await call('GET', `/server-containers/${id}/events`);
      return body.events.filter(({ kind }: { kind: string }) => kind === 'host');
    };
    await eventually(
      async () => expect((await hostEvents()).at(-1)?.detail).toContain('Unhealthy: the pod '),
      WAIT,
    );
    await eventually(async () => expect((await statusOf())?.ready).toBe(true), WAIT);
    for (const name of names) {
      const { status } = await get('pod', name);
      expect(status.containerStatuses[0]).toMatchObject({ ready: true, restartCount: 1 });
    }
    await eventually(async () => expect((await hostEvents()).at(-1)).toMatchObject({ reason: null }), WAIT);
  });

  test('keeps its last good state where its manifest breaks', async () => {
    const clone = await world.clone();
    const before = (await get('pods')).items.map(
      ({ metadata }: { metadata: { uid: string } }) => metadata.uid,
    );
    const file = join(clone, `${site}.yaml`);
    const text = await readFile(file, 'utf8');
    const push = async (content: string, subject: string) => {
      await writeFile(file, content);
      await world.git(clone, 'commit', '--quiet', '--all', '--message', subject);
      await world.git(clone, 'push', '--quiet');
    };
    await push(
      text.replace('state: present', 'state: perhaps').replace('image:', 'imagine:'),
      'Break the manifest',
    );
    await eventually(async () => expect((await statusOf())?.reason).toBe('InvalidManifest'), WAIT);
    expect(await ask('processing')).toContain('id=GTM-SRV12345');
    const after = (await get('pods')).items.map(
      ({ metadata }: { metadata: { uid: string } }) => metadata.uid,
    );
    expect(after.toSorted()).toEqual(before.toSorted());
    await push(text, 'Repair the manifest');
    await eventually(async () => expect((await statusOf())?.ready).toBe(true), WAIT);
  });

  test('is removed with everything that it had, its client’s namespace included', async () => {
    const { status } = await call('DELETE', `/server-containers/${id}`);
    expect(status).toBe(202);
    await eventually(async () => {
      expect(await cluster.kubectl('get', 'namespaces', '--output', 'name')).not.toContain(namespace);
    }, WAIT);
    const records = await emulator.call('GET', `/zones/${emulator.zone.id}/dns_records`);
    expect(records.json.result).toEqual([]);
  });
});
