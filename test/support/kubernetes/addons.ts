import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from './control-plane.ts';
import type { ClusterNetwork } from './node.ts';

const METRICS_PORT = 4443;
const METRICS = { name: 'metrics-server', namespace: 'kube-system' };

/** CoreDNS at the address that pods ask. It knows the names of Services, and what this machine resolves. */
export async function nameServer({ folder, dns }: ClusterNetwork): Promise<Flags> {
  const conf = join(folder, 'Corefile');
  const lines = [
    '. {',
    `bind ${dns}`,
    'errors',
    'kubernetes cluster.local in-addr.arpa ip6.arpa {',
    `kubeconfig ${join(folder, 'admin.kubeconfig')}`,
    'ttl 1',
    'fallthrough in-addr.arpa ip6.arpa',
    '}',
    'forward . /etc/resolv.conf',
    '}',
  ];
  await writeFile(conf, `${lines.join('\n')}\n`);
  return { conf };
}

/** metrics-server on the machine, and the objects by which the API server finds it. */
export async function metricsServer(network: ClusterNetwork): Promise<{ flags: Flags; objects: object }> {
  const { folder, dns: machine, pki } = network;
  const host = `${METRICS.name}.${METRICS.namespace}.svc`;
  const pair = await pki.issue(METRICS.name, { subject: `CN=${host}`, dns: [host] });
  const kubeconfig = join(folder, 'admin.kubeconfig');
  const port = { port: METRICS_PORT, protocol: 'TCP' };
  const items = [
    { apiVersion: 'v1', kind: 'Service', metadata: METRICS, spec: { ports: [port] } },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...METRICS, labels: { 'kubernetes.io/service-name': METRICS.name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [machine], conditions: { ready: true } }],
      ports: [port],
    },
    {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: 'v1beta1.metrics.k8s.io' },
      spec: {
        group: 'metrics.k8s.io',
        version: 'v1beta1',
        groupPriorityMinimum: 100,
        versionPriority: 100,
        caBundle: (await readFile(pki.caFile)).toString('base64'),
        service: { ...METRICS, port: METRICS_PORT },
      },
    },
  ];
  return {
    flags: {
      kubeconfig,
      'authentication-kubeconfig': kubeconfig,
      'authorization-kubeconfig': kubeconfig,
      'bind-address': machine,
      'secure-port': METRICS_PORT,
      'tls-cert-file': pair.certificate,
      'tls-private-key-file': pair.key,
      'kubelet-preferred-address-types': 'InternalIP',
      'kubelet-certificate-authority': pki.caFile,
      // The shortest time that metrics-server accepts.
      'metric-resolution': '10s',
      'kubelet-request-timeout': '5s',
    },
    objects: { apiVersion: 'v1', kind: 'List', items },
  };
}
