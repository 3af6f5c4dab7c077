import { posix } from 'node:path';
import type { ContainerRole, LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { environments } from '../../../../sites/manifest/containers.ts';
import { originUrl } from '../../../../sites/manifest/documents.ts';
import { memoryBytes } from '../../../../sites/manifest/resources/memory.ts';
import { TAG_SERVER } from '../../../../sites/manifest/resources/tag-server.ts';
import { podSelector, policyName, siteLabels } from './names.ts';
import { memoryQuantity } from './quantities.ts';
import { statedResources } from './resources.ts';
import { SECRET_KEYS, secretName, trustedCa } from './secret.ts';
import type { ClusterSettings } from './settings.ts';

const FILES = 'files';
/** Where a container reads files of its Secret. */
const FILES_FOLDER = posix.dirname(TAG_SERVER.keyFile);
const TEMPORARY = 'tmp';
const USER = { runAsNonRoot: true, runAsUser: TAG_SERVER.user, runAsGroup: TAG_SERVER.user } as const;

/** The port of the gateways' Service for policy scripts. */
const POLICY_PORT = 443;
/** Seconds for which a pod that ends still serves, until every proxy and gateway has dropped its address. */
const ENDING_SECONDS = 10;
/** Seconds until it is killed: requests that it has accepted end by then. */
const GRACE_SECONDS = ENDING_SECONDS + 30;
/** The same for a pod that doesn't answer: it has no requests that could end. */
const HUNG_GRACE_SECONDS = ENDING_SECONDS + 5;
/**
 * After 12 to 14 days the image answers health checks with 503, on all pods at about the same time, and still serves.
 * Asked with this limit of its age, in milliseconds, it answers 200 (docs/facts.md, Health).
 */
const ANY_AGE = { name: 'x-sgtm-healthz', value: 'server_start_millis=9000000000000000' } as const;
/** Seconds after which pods of a lost node are made elsewhere. By default, Kubernetes waits for 300. */
const LOST_NODE_SECONDS = 30;

/** The pods of one role, as a Deployment's template. Pure; the defaults of the API server are written out. */
export function podTemplate(manifest: LoadedManifest, role: ContainerRole, settings: ClusterSettings) {
  const { site } = manifest;
  const files = filesOf(manifest, role, settings);
  const selector = podSelector(site, role, settings);
  return {
    metadata: {
      labels: { ...siteLabels(manifest, settings), ...selector },
      // Another edition replaces the pods before the image reports itself unhealthy (docs/facts.md, Health).
      annotations: { 'tagyard/edition': settings.edition(site) },
    },
    spec: {
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: GRACE_SECONDS,
      dnsPolicy: 'ClusterFirst',
      // Names of the internet are resolved as they are, and not tried under the cluster's domains first.
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      schedulerName: 'default-scheduler',
      automountServiceAccountToken: false,
      // Otherwise the environment would have the address of every Service of the namespace.
      enableServiceLinks: false,
      securityContext: {
        ...USER,
        // The group that may read the mounted key.
        fsGroup: TAG_SERVER.user,
        seccompProfile: { type: 'RuntimeDefault' },
      },
      tolerations: ['not-ready', 'unreachable'].map((taint) => ({
        key: `node.kubernetes.io/${taint}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: LOST_NODE_SECONDS,
      })),
      topologySpreadConstraints: [
        // The loss of one node must not end all pods. A node that is drained or lost doesn't count.
        { topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' },
        { topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' },
      ].map((one) => ({
        ...one,
        maxSkew: 1,
        labelSelector: { matchLabels: selector },
        // Without it, the pods that a rollout replaces count, and the new ones end up together.
        matchLabelKeys: ['pod-template-hash'],
        nodeAffinityPolicy: 'Honor',
        nodeTaintsPolicy: 'Honor',
      })),
      containers: [container(manifest, role, settings)],
      volumes: [
        {
          name: TEMPORARY,
          emptyDir: { medium: 'Memory', sizeLimit: memoryQuantity(memoryBytes(TAG_SERVER.temporary)) },
        },
        ...(files.length === 0
          ? []
          : [
              {
                name: FILES,
                secret: {
                  secretName: secretName(manifest, settings),
                  defaultMode: 0o440,
                  items: files,
                },
              },
            ]),
      ],
    },
  };
}

function container(manifest: LoadedManifest, role: ContainerRole, settings: ClusterSettings) {
  const { image, ports } = manifest;
  const port = ports[role];
  return {
    name: 'tag-server',
    image,
    // An image without a name is in no registry: it must be on the nodes already.
    imagePullPolicy: image.startsWith('sha256:') ? 'Never' : 'IfNotPresent',
    env: [
      ...Object.entries(environment(manifest, role, settings)).map(([name, value]) => ({ name, value })),
      {
        name: SECRET_KEYS.config,
        valueFrom: { secretKeyRef: { name: secretName(manifest, settings), key: SECRET_KEYS.config } },
      },
    ],
    ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
    resources: statedResources(manifest, role),
    ...probes(port),
    lifecycle: { preStop: { sleep: { seconds: ENDING_SECONDS } } },
    securityContext: {
      ...USER,
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    },
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    volumeMounts: [
      { name: TEMPORARY, mountPath: '/tmp' },
      ...(filesOf(manifest, role, settings).length === 0
        ? []
        : [{ name: FILES, mountPath: FILES_FOLDER, readOnly: true }]),
    ],
  };
}

function environment(manifest: LoadedManifest, role: ContainerRole, settings: ClusterSettings) {
  const read = environments(manifest, {
    previewUrl: originUrl(manifest.hostnames.preview, settings.originPort),
    policyUrl:
      settings.policyScripts === undefined
        ? null
        : `${originUrl(policyName(manifest.site), POLICY_PORT)}/${settings.policyScripts.tokenOf(manifest)}`,
  });
  return {
    ...read[role],
    // Each site has ports of its own: a pod that gets the address of another site's ended pod refuses its connections.
    PORT: String(manifest.ports[role]),
    ...(manifest.serviceAccountKey === undefined
      ? {}
      : { GOOGLE_APPLICATION_CREDENTIALS: TAG_SERVER.keyFile }),
    ...(trustsCa(manifest, role, settings)
      ? { NODE_EXTRA_CA_CERTS: posix.join(FILES_FOLDER, SECRET_KEYS.ca) }
      : {}),
  };
}

/** Only the processing server reads the policy script. */
function trustsCa(manifest: LoadedManifest, role: ContainerRole, settings: ClusterSettings): boolean {
  return role === 'processing' && trustedCa(manifest, settings) !== null;
}

/** The parts of the Secret that a container reads from files. */
function filesOf(manifest: LoadedManifest, role: ContainerRole, settings: ClusterSettings) {
  const account = { key: SECRET_KEYS.account, path: posix.basename(TAG_SERVER.keyFile) };
  const ca = { key: SECRET_KEYS.ca, path: SECRET_KEYS.ca };
  return [
    ...(manifest.serviceAccountKey === undefined ? [] : [account]),
    ...(trustsCa(manifest, role, settings) ? [ca] : []),
  ];
}

/**
 * The image listens only after it has fetched its code, so a connection shows that it has started. After that, only an
 * answer shows that it serves: the kernel takes connections also for a process that hangs.
 */
function probes(port: number) {
  const connect = { tcpSocket: { port }, timeoutSeconds: 1, successThreshold: 1 };
  const ask = {
    httpGet: { path: '/healthz', port, scheme: 'HTTP', httpHeaders: [ANY_AGE] },
    timeoutSeconds: 4,
    successThreshold: 1,
    failureThreshold: 3,
  };
  return {
    startupProbe: { ...connect, periodSeconds: 1, failureThreshold: 120 },
    // A pod that doesn't answer gets no requests after 19 s. It is restarted after two minutes: a pod that is only slow,
    // because too much is asked of it, must not make it worse for the others by a restart.
    readinessProbe: { ...ask, periodSeconds: 5 },
    livenessProbe: {
      ...ask,
      periodSeconds: 10,
      failureThreshold: 12,
      terminationGracePeriodSeconds: HUNG_GRACE_SECONDS,
    },
  };
}
