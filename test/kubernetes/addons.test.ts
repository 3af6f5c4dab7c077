import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { writeProgramImage } from '../support/kubernetes/image.ts';

const WAIT = { timeoutMs: 180_000, intervalMs: 200 };
const IMAGE = 'busybox.test/busybox:1';

/** A server's work for one connection: a few hundredths of a second of a core. */
const WORK = 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done; echo done';

/** A Deployment of one container, its Service, and an HPA that starts another pod above 20m of a core. */
const BUSY = {
  apiVersion: 'v1',
  kind: 'List',
  items: [
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'busy' },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: 'busy' } },
        template: {
          metadata: { labels: { app: 'busy' } },
          spec: {
            automountServiceAccountToken: false,
            terminationGracePeriodSeconds: 0,
            containers: [
              {
                name: 'busy',
                image: IMAGE,
                imagePullPolicy: 'Never',
                args: ['nc', '-ll', '-p', '8080', '-e', '/bin/busybox', 'sh', '-c', WORK],
                ports: [{ containerPort: 8080, protocol: 'TCP' }],
                resources: { requests: { cpu: '40m' }, limits: { cpu: '200m' } },
              },
            ],
          },
        },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'busy' },
      spec: { selector: { app: 'busy' }, ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }] },
    },
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'busy' },
      spec: {
        minReplicas: 1,
        maxReplicas: 2,
        scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'busy' },
        metrics: [
          {
            type: 'Resource',
            resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
          },
        ],
      },
    },
  ],
};

describeWith(['kubernetes', 'root'], 'what pods and autoscalers need in a cluster for tests', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1, metrics: true });
    const image = join(cluster.folder, 'busybox.tar');
    await writeProgramImage(image, { name: IMAGE, program: '/bin/busybox', entrypoint: ['/bin/busybox'] });
    await cluster.importImages(image);
    await cluster.apply(BUSY);
    await cluster.kubectl('rollout', 'status', 'deployment/busy', '--timeout=180s');
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const inside = (...args: string[]) =>
    cluster.kubectl('exec', 'deployment/busy', '--', '/bin/busybox', ...args);
  const replicas = () =>
    cluster.kubectl('get', 'deployment', 'busy', '--output', 'jsonpath={.status.readyReplicas}');

  test('a pod resolves the name of a Service, and gets no address for a name that doesn’t exist', async () => {
    const address = await cluster.kubectl('get', 'service', 'busy', '--output', 'jsonpath={.spec.clusterIP}');
    await eventually(
      async () => expect(await inside('nslookup', 'busy.default.svc.cluster.local')).toContain(address),
      WAIT,
    );
    await expect(inside('nslookup', 'none.default.svc.cluster.local')).rejects.toThrow(/can't|NXDOMAIN/);
  });

  test('an HPA adds a pod under the load that metrics-server measures', async () => {
    const { items } = JSON.parse(await cluster.kubectl('get', 'pods', '--output', 'json'));
    const address: string = items[0].status.podIP;
    expect(await replicas()).toBe('1');
    const ended = new AbortController();
    const load = (async () => {
      while (!ended.signal.aborted) expect(await answerOf(address)).toBe('done\n');
    })();
    await eventually(async () => expect(await replicas()).toBe('2'), WAIT);
    ended.abort();
    await load;
    expect(await cluster.kubectl('top', 'pods')).toContain('busy-');
  });
});

/** What the server answers on one connection. */
const answerOf = (host: string) => text(connect({ host, port: 8080 }));
