import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Flags } from './control-plane.ts';

const ANNOTATION = { 'kwok.x-k8s.io/node': 'fake' };
const CONDITIONS = `
{{ $now := Now }}
conditions:
{{ range NodeConditions }}
- lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
  message: {{ .message | Quote }}
  reason: {{ .reason | Quote }}
  status: {{ .status | Quote }}
  type: {{ .type | Quote }}
{{ end }}`;
const RUNNING = `
{{ $now := Now }}
conditions:
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Initialized}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: Ready}
- {lastTransitionTime: {{ $now | Quote }}, status: "True", type: ContainersReady}
containerStatuses:
{{ range .spec.containers }}
- image: {{ .image | Quote }}
  name: {{ .name | Quote }}
  ready: true
  restartCount: 0
  state: {running: {startedAt: {{ $now | Quote }}}}
{{ end }}
podIP: {{ index (PodIPsWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace) 0 | Quote }}
phase: Running
startTime: {{ $now | Quote }}`;

const stage = (name: string, kind: string, selector: object, next: object) => ({
  apiVersion: 'kwok.x-k8s.io/v1alpha1',
  kind: 'Stage',
  metadata: { name },
  spec: {
    resourceRef: { apiGroup: 'v1', kind },
    selector: { matchExpressions: selector },
    next,
  },
});
const DELETED = '.metadata.deletionTimestamp';
const READY = '.status.conditions.[] | select( .type == "Ready" ) | .status';
/** A node is ready at once, a pod runs at once, and its deletion is done at once. Without stages, kwok does nothing. */
const STAGES = [
  stage('node-ready', 'Node', [{ key: READY, operator: 'NotIn', values: ['True'] }], {
    statusTemplate: `${CONDITIONS}\nphase: Running`,
  }),
  stage(
    'pod-runs',
    'Pod',
    [
      { key: DELETED, operator: 'DoesNotExist' },
      { key: '.status.phase', operator: 'In', values: ['Pending'] },
    ],
    { statusTemplate: RUNNING },
  ),
  stage('pod-ends', 'Pod', [{ key: DELETED, operator: 'Exists' }], { delete: true }),
];

/** Nodes on which nothing runs: kwok reports their pods as running (https://kwok.sigs.k8s.io). For figures at scale. */
export async function simulatedNodes(
  { folder, kubeconfig }: { folder: string; kubeconfig: string },
  count: number,
): Promise<{ flags: Flags; objects: object }> {
  const config = join(folder, 'kwok.yaml');
  await writeFile(config, STAGES.map((one) => JSON.stringify(one)).join('\n---\n'));
  const room = { cpu: '1k', memory: '1Ti', pods: '1k', 'ephemeral-storage': '10Ti' };
  const items = Array.from({ length: count }, (_, index) => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `simulated-${index + 1}`,
      annotations: ANNOTATION,
      labels: { 'kubernetes.io/hostname': `simulated-${index + 1}` },
    },
    status: { allocatable: room, capacity: room },
  }));
  return {
    flags: {
      kubeconfig,
      config,
      'manage-nodes-with-annotation-selector': 'kwok.x-k8s.io/node=fake',
      'node-lease-duration-seconds': 40,
      cidr: '10.0.0.0/8',
    },
    objects: { apiVersion: 'v1', kind: 'List', items },
  };
}
