import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { writeProgramImage } from '../support/kubernetes/image.ts';
import { run } from '../support/kubernetes/machine.ts';

const WAIT = { timeoutMs: 180_000, intervalMs: 200 };
const WEB_IMAGE = 'web.test/web:1';

/** Two pods of a server that answers with its pod's name, on different nodes behind one Service. */
const WEB = {
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web' },
      spec: {
        replicas: 2,
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 0,
            topologySpreadConstraints: [
              {
                maxSkew: 1,
                topologyKey: 'kubernetes.io/hostname',
                whenUnsatisfiable: 'DoNotSchedule',
                labelSelector: { matchLabels: { app: 'web' } },
              },
            ],
            containers: [
              {
                name: 'web',
                image: WEB_IMAGE,
                imagePullPolicy: 'Never',
                args: ['nc', '-ll', '-p', '8080', '-e', '/bin/busybox', 'hostname'],
                ports: [{ containerPort: 8080, protocol: 'TCP' }],
              },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { app: 'web' }, ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }] },
    },
  ],
};

describeWith(['kubernetes', 'root'], 'a cluster for tests', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 2, lostAfter: 18 });
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  test('runs pods on every node, which reach each other and their Service', async () => {
    const image = join(cluster.folder, 'web.tar');
    await writeProgramImage(image, {
      name: WEB_IMAGE,
      program: '/bin/busybox',
      entrypoint: ['/bin/busybox'],
    });
    await cluster.importImages(image);
    await cluster.apply(WEB);
    const pods = await eventually(async () => {
      const found = JSON.parse(await cluster.kubectl('get', 'pods', '--output', 'json')).items;
      expect(found.map((pod: { status: { phase: string } }) => pod.status.phase)).toEqual([
        'Running',
        'Running',
      ]);
      return found as { metadata: { name: string }; status: { podIP: string }; spec: { nodeName: string } }[];
    }, WAIT);
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(2);
    const service = await cluster.kubectl('get', 'service', 'web', '--output', 'jsonpath={.spec.clusterIP}');
    const [first] = pods;
    const from = (host: string, port: number) =>
      cluster.kubectl(
        'exec',
        first?.metadata.name ?? '',
        '--',
        '/bin/busybox',
        'nc',
        '-w',
        '2',
        host,
        String(port),
      );
    for (const { metadata, status } of pods) {
      await eventually(async () => expect((await from(status.podIP, 8080)).trim()).toBe(metadata.name), WAIT);
    }
    const answers = new Set<string>();
    await eventually(async () => {
      answers.add((await from(service, 80)).trim());
      expect(answers).toEqual(new Set(pods.map(({ metadata }) => metadata.name)));
    }, WAIT);
  });

  test('notices a node that is cut off from the API server, and one whose power is cut', async () => {
    const [first, second] = cluster.nodes;
    if (first === undefined || second === undefined) throw new Error('the cluster doesn’t have two nodes');
    await first.cut('api');
    await second.kill();
    await cluster.nodesAre({ [first.name]: 'Unknown', [second.name]: 'Unknown' });
    await first.heal();
    await second.start();
    await cluster.nodesAre({ [first.name]: 'True', [second.name]: 'True' });
  });

  test('lists the requests to its API server', async () => {
    await cluster.kubectl('get', 'configmaps', '--namespace', 'kube-public');
    await eventually(() =>
      expect(
        cluster.requests().filter(({ user, verb }) => user === 'admin' && verb === 'list'),
      ).toContainEqual(expect.objectContaining({ resource: 'configmaps', code: 200 })),
    );
  });

  test('runs beside another one, which ends without a trace', async () => {
    const other = await Cluster.start({ nodes: 1 });
    await other.kubectl('get', 'nodes');
    await other[Symbol.asyncDispose]();
    expect(await run('ip', 'netns', 'list')).not.toContain(other.id);
    expect(await run('ip', '-brief', 'link')).not.toMatch(new RegExp(`^${other.id}\\b`, 'm'));
    expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(other.folder);
    expect(await processesThatName(other.folder)).toEqual([]);
    for (const controller of await readdir('/sys/fs/cgroup')) {
      const groups = await readdir(join('/sys/fs/cgroup', controller)).catch(() => []);
      expect(groups.filter((name) => name.startsWith(`${other.id}-`))).toEqual([]);
    }
    await cluster.nodesAreReady();
  });
});

/** The command lines of all processes of the machine that name the folder. */
async function processesThatName(folder: string): Promise<string[]> {
  const ids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = ids.map((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, 'utf8').replaceAll('\0', ' ');
    } catch {
      return '';
    }
  });
  return lines.filter((line) => line.includes(folder));
}
