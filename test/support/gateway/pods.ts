import { realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GATEWAYS, INSTANCE, SITES } from './stage.ts';

/** An image with one program, which the pods don't run: all that they run is mounted from this machine. */
export const MACHINE_IMAGE = 'gateway.test/machine:1';
/** The ports of the gateways on the nodes, by which a load balancer of a cloud reaches gateways. */
export const NODE_PORTS = { tls: 30_443, health: 30_081 } as const;
/** The ports of another Service, which has all gateways, whether or not the cluster counts them as ready. */
export const FALLBACK_PORTS = { tls: 31_443, health: 31_081 } as const;
export const SLOW_PATH = '/slow';
const TLS_PORT = 8443;
const HEALTH_PORT = 8081;

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const PACKAGES = realpathSync(join(ROOT, 'node_modules'));
/** The folders that nginx, Node and the agent read. */
const FOLDERS = ['/usr', '/lib', '/lib64', ROOT, dirname(PACKAGES)];
const USER = 65_532;

const mounts = {
  volumeMounts: [
    ...FOLDERS.map((path, index) => ({ name: `machine-${index}`, mountPath: path, readOnly: true })),
    { name: 'state', mountPath: '/state' },
  ],
  volumes: [
    ...FOLDERS.map((path, index) => ({ name: `machine-${index}`, hostPath: { path } })),
    { name: 'state', emptyDir: {} },
  ],
};

/** Spreads the pods over nodes. */
const apart = (app: string) => [
  {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'DoNotSchedule',
    labelSelector: { matchLabels: { app } },
    matchLabelKeys: ['pod-template-hash'],
    nodeAffinityPolicy: 'Honor',
    nodeTaintsPolicy: 'Honor',
  },
];

/** Puts both pods on this node while it accepts pods. */
const together = (node: string) => ({
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        preference: {
          matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [node] }],
        },
      },
    ],
  },
});

/** A pod stays on a lost node for as long as the provisioner lets a site's pods stay there. */
const lostNode = ['not-ready', 'unreachable'].map((taint) => ({
  key: `node.kubernetes.io/${taint}`,
  operator: 'Exists',
  effect: 'NoExecute',
  tolerationSeconds: 30,
}));

interface PodSettings {
  readonly app: string;
  readonly namespace: string;
  readonly args: readonly string[];
  readonly env?: readonly object[];
  readonly probe: object;
  readonly account?: string;
  readonly nameServer?: string;
  readonly sysctls?: readonly { readonly name: string; readonly value: string }[];
  readonly endingSeconds: number;
  /** The node of both pods; default: they are on two nodes. */
  readonly on?: string | undefined;
}

/** Two pods that run Node with these arguments. A drain of a node evicts one at a time. */
function deployment({
  app,
  namespace,
  args,
  env = [],
  probe,
  account,
  nameServer,
  sysctls = [],
  endingSeconds,
  on,
}: PodSettings): object[] {
  const budget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: app, namespace },
    spec: {
      maxUnavailable: 1,
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: { app } },
    },
  };
  const pods = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: app, namespace },
    spec: {
      replicas: 2,
      strategy: { rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
      selector: { matchLabels: { app } },
      template: {
        metadata: { labels: { app } },
        spec: {
          ...(account === undefined
            ? { automountServiceAccountToken: false }
            : { serviceAccountName: account }),
          terminationGracePeriodSeconds: 60,
          ...(nameServer === undefined
            ? {}
            : { dnsPolicy: 'None', dnsConfig: { nameservers: [nameServer] } }),
          ...(on === undefined ? { topologySpreadConstraints: apart(app) } : { affinity: together(on) }),
          tolerations: lostNode,
          securityContext: {
            ...{ runAsUser: USER, runAsGroup: USER, fsGroup: USER, runAsNonRoot: true },
            sysctls,
          },
          containers: [
            {
              name: app,
              image: MACHINE_IMAGE,
              imagePullPolicy: 'Never',
              command: [process.execPath, ...args],
              env: [{ name: 'PATH', value: '/usr/sbin:/usr/bin' }, ...env],
              volumeMounts: mounts.volumeMounts,
              lifecycle: { preStop: { sleep: { seconds: endingSeconds } } },
              readinessProbe: { ...probe, periodSeconds: 1 },
            },
          ],
          volumes: mounts.volumes,
        },
      },
    },
  };
  return [budget, pods];
}

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });

/** Each node sends to its own gateways only: the visitor's address arrives, and no hop is added. */
function nodePorts(name: string, { tls, health }: { tls: number; health: number }, more: object = {}) {
  const protocol = 'TCP';
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: GATEWAYS },
    spec: {
      type: 'NodePort',
      externalTrafficPolicy: 'Local',
      selector: { app: 'gateway' },
      ports: [
        { name: 'tls', port: 443, targetPort: TLS_PORT, nodePort: tls, protocol },
        { name: 'health', port: HEALTH_PORT, targetPort: HEALTH_PORT, nodePort: health, protocol },
      ],
      ...more,
    },
  };
}

/**
 * Two gateways with an account that may do what a gateway does, and no more. `nameServer`: the address of the server
 * that they ask for names.
 */
export function gatewayPods(nameServer: string): object[] {
  const account = 'gateway';
  const subjects = [{ kind: 'ServiceAccount', name: account, namespace: GATEWAYS }];
  const apiGroup = 'rbac.authorization.k8s.io';
  const rbac = (kind: string, name: string, rest: object, namespace?: string) => ({
    apiVersion: `${apiGroup}/v1`,
    kind,
    metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
    ...rest,
  });
  const follow = ['get', 'list', 'watch'];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace: GATEWAYS } },
    rbac(
      'Role',
      account,
      {
        rules: [
          { apiGroups: [''], resources: ['secrets'], verbs: follow },
          {
            apiGroups: ['coordination.k8s.io'],
            resources: ['leases'],
            verbs: ['list', 'watch', 'create', 'patch'],
          },
        ],
      },
      GATEWAYS,
    ),
    rbac('RoleBinding', account, { roleRef: { apiGroup, kind: 'Role', name: account }, subjects }, GATEWAYS),
    rbac('ClusterRole', 'gateway-endpoints', {
      rules: [{ apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: follow }],
    }),
    rbac('ClusterRoleBinding', 'gateway-endpoints', {
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'gateway-endpoints' },
      subjects,
    }),
    nodePorts('gateway', NODE_PORTS),
    nodePorts('gateway-fallback', FALLBACK_PORTS, { publishNotReadyAddresses: true }),
    ...deployment({
      app: 'gateway',
      namespace: GATEWAYS,
      args: [join(ROOT, 'gitops/kubernetes/gateway/main.ts')],
      account,
      nameServer,
      sysctls: [
        { name: 'net.ipv4.tcp_keepalive_time', value: '1' },
        { name: 'net.ipv4.tcp_keepalive_intvl', value: '1' },
        { name: 'net.ipv4.tcp_keepalive_probes', value: '2' },
      ],
      endingSeconds: 5,
      probe: { httpGet: { path: '/ready', port: HEALTH_PORT } },
      env: [
        { name: 'TAGYARD_INSTANCE', value: INSTANCE },
        { name: 'GATEWAY_DIR', value: '/state/gateway' },
        { name: 'GATEWAY_ANNOUNCE_SECONDS', value: '4' },
        { name: 'NGINX_BIN', value: '/usr/sbin/nginx' },
        field('GATEWAY_NAMESPACE', 'metadata.namespace'),
        field('POD_NAME', 'metadata.name'),
        field('POD_UID', 'metadata.uid'),
      ],
    }),
  ];
}

/**
 * Two pods of a site behind a Service, on two nodes, or both on the node `on`. Each answers with the name of its pod:
 * after a second for `SLOW_PATH`, and otherwise after 30 ms.
 */
export function sitePods(site: string, port: number, on?: string): object[] {
  const app = `tag-${site}-processing`;
  const program = `
    const server = require('node:http').createServer((request, response) => {
      const answer = () => response.setHeader('x-upstream', process.env.POD_NAME).end('ok');
      request.resume().on('end', () => setTimeout(answer, request.url === '${SLOW_PATH}' ? 1_000 : 30));
    });
    server.listen(${port});
    process.on('SIGTERM', () => server.close(() => process.exit(0)));`;
  return [
    ...deployment({
      app,
      namespace: SITES,
      args: ['--eval', program],
      endingSeconds: 5,
      probe: { tcpSocket: { port } },
      env: [field('POD_NAME', 'metadata.name')],
      on,
    }),
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: app, namespace: SITES, labels: { 'tagyard/instance': INSTANCE } },
      spec: { selector: { app }, ports: [{ name: 'http', port, targetPort: port, protocol: 'TCP' }] },
    },
  ];
}
