import { join } from 'node:path';
import { KUBERNETES } from '../components.ts';
import type { Cluster } from '../kubernetes/cluster.ts';
import { writeProgramImage } from '../kubernetes/image.ts';

const IMAGE = 'coredns.test/coredns:1';
const NAME = 'name-server';
const NAMESPACE = 'kube-system';
const PORT = 5353;
const META = { name: NAME, namespace: NAMESPACE };

/** CoreDNS as a pod, behind a Service, as clusters have it. A pod that is to use it states the Service's address. */
export class NameServer {
  /** The address of the Service. */
  readonly address: string;
  readonly #cluster: Cluster;

  private constructor(cluster: Cluster, address: string) {
    this.#cluster = cluster;
    this.address = address;
  }

  static async start(cluster: Cluster): Promise<NameServer> {
    const file = join(cluster.folder, 'coredns.tar');
    const program = join(KUBERNETES, 'coredns');
    await writeProgramImage(file, { name: IMAGE, program, entrypoint: ['/coredns'] });
    await cluster.importImages(file);
    const apiGroup = 'rbac.authorization.k8s.io';
    const ports = ['UDP', 'TCP'].map((protocol) => ({
      name: protocol.toLowerCase(),
      port: 53,
      targetPort: PORT,
      protocol,
    }));
    const Corefile = `.:${PORT} {\n  errors\n  kubernetes cluster.local\n}\n`;
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        { apiVersion: 'v1', kind: 'ServiceAccount', metadata: META },
        {
          apiVersion: `${apiGroup}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name: NAME },
          // A role of Kubernetes. It allows more than CoreDNS needs, but not nodes; the ClusterRole below does.
          roleRef: { apiGroup, kind: 'ClusterRole', name: 'view' },
          subjects: [{ kind: 'ServiceAccount', ...META }],
        },
        {
          apiVersion: `${apiGroup}/v1`,
          kind: 'ClusterRole',
          metadata: { name: NAME },
          rules: [{ apiGroups: [''], resources: ['namespaces', 'nodes'], verbs: ['list', 'watch'] }],
        },
        {
          apiVersion: `${apiGroup}/v1`,
          kind: 'ClusterRoleBinding',
          metadata: { name: `${NAME}-namespaces` },
          roleRef: { apiGroup, kind: 'ClusterRole', name: NAME },
          subjects: [{ kind: 'ServiceAccount', ...META }],
        },
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: META, data: { Corefile } },
        {
          apiVersion: 'v1',
          kind: 'Service',
          metadata: META,
          spec: { selector: { app: NAME }, ports },
        },
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: META,
          spec: {
            selector: { matchLabels: { app: NAME } },
            strategy: { type: 'Recreate' },
            template: {
              metadata: { labels: { app: NAME } },
              spec: {
                serviceAccountName: NAME,
                dnsPolicy: 'Default',
                containers: [
                  {
                    name: NAME,
                    image: IMAGE,
                    imagePullPolicy: 'Never',
                    args: ['-conf', '/etc/coredns/Corefile'],
                    readinessProbe: { tcpSocket: { port: PORT }, periodSeconds: 1 },
                    volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
                  },
                ],
                volumes: [{ name: 'config', configMap: { name: NAME } }],
              },
            },
          },
        },
      ],
    });
    const service = ['get', 'service', NAME, '--namespace', NAMESPACE];
    const address = await cluster.kubectl(...service, '--output=jsonpath={.spec.clusterIP}');
    const server = new NameServer(cluster, address);
    await server.#isReady();
    return server;
  }

  /** Moves CoreDNS to this node. */
  async moveTo(node: string): Promise<void> {
    const nodeSelector = { 'kubernetes.io/hostname': node };
    const patch = JSON.stringify({ spec: { template: { spec: { nodeSelector } } } });
    const names = ['patch', 'deployment', NAME, '--namespace', NAMESPACE];
    await this.#cluster.kubectl(...names, '--type=merge', '--patch', patch);
    await this.#isReady();
  }

  async #isReady(): Promise<void> {
    const names = [`deployment/${NAME}`, '--namespace', NAMESPACE];
    await this.#cluster.kubectl('rollout', 'status', ...names, '--timeout=120s');
  }
}
