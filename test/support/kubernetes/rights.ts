import type { ApiCall } from './call-as.ts';

/** One right of RBAC. */
interface Right {
  readonly group: string;
  readonly resource: string;
  readonly verb: string;
}

/** A call with this changes nothing. */
const DRY = 'dryRun=All';

const labels = { app: 'sample' };
const resources = { requests: { cpu: '1m' }, limits: { cpu: '1m' } };
/** A small object of each kind, without its name; valid for the kinds that Tagyard may create. */
const SAMPLES: Readonly<Record<string, { apiVersion: string; kind: string; spec?: object }>> = {
  namespaces: { apiVersion: 'v1', kind: 'Namespace' },
  resourcequotas: { apiVersion: 'v1', kind: 'ResourceQuota', spec: { hard: { pods: '5' } } },
  secrets: { apiVersion: 'v1', kind: 'Secret' },
  services: { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80, protocol: 'TCP' }] } },
  configmaps: { apiVersion: 'v1', kind: 'ConfigMap' },
  persistentvolumeclaims: { apiVersion: 'v1', kind: 'PersistentVolumeClaim' },
  pods: { apiVersion: 'v1', kind: 'Pod' },
  events: { apiVersion: 'events.k8s.io/v1', kind: 'Event' },
  deployments: {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [{ name: 'sample', image: 'sample.test/sample:1', resources }] },
      },
    },
  },
  replicasets: { apiVersion: 'apps/v1', kind: 'ReplicaSet' },
  statefulsets: { apiVersion: 'apps/v1', kind: 'StatefulSet' },
  daemonsets: { apiVersion: 'apps/v1', kind: 'DaemonSet' },
  jobs: { apiVersion: 'batch/v1', kind: 'Job' },
  cronjobs: { apiVersion: 'batch/v1', kind: 'CronJob' },
  ingresses: { apiVersion: 'networking.k8s.io/v1', kind: 'Ingress' },
  horizontalpodautoscalers: {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    spec: {
      maxReplicas: 1,
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'sample' },
    },
  },
  poddisruptionbudgets: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', spec: { maxUnavailable: 1 } },
  networkpolicies: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', spec: { podSelector: {} } },
  leases: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' },
};

/** A namespace with these labels. */
export const namespaceWith = (name: string, labels: object) => sampleOf('namespaces', { name, labels });

/** An object of the resource (`secrets`); throws an `Error` for one that isn't known here. */
export function sampleOf(resource: string, metadata: { name: string; namespace?: string; labels?: object }) {
  const sample = SAMPLES[resource];
  if (sample === undefined) throw new Error(`no sample of ${resource}`);
  return { ...sample, metadata };
}

/** The path of a resource's objects, in all namespaces or in one. */
export function pathOf(resource: string, namespace?: string): string {
  const { apiVersion } = sampleOf(resource, { name: 'sample' });
  const root = apiVersion.includes('/') ? '/apis' : '/api';
  return `${root}/${apiVersion}/${namespace === undefined ? '' : `namespaces/${namespace}/`}${resource}`;
}

/** Calls that would create an object, or apply it over what is there. */
export const creating = (resource: string, object: object, namespace?: string): ApiCall => ({
  method: 'POST',
  path: `${pathOf(resource, namespace)}?${DRY}`,
  body: object,
});
export const applying = (path: string, object: object): ApiCall => ({
  method: 'PATCH',
  path: `${path}?${DRY}&fieldManager=tagyard&force=true`,
  body: object,
});
export const deleting = (path: string): ApiCall => ({ method: 'DELETE', path: `${path}?${DRY}` });

/**
 * A call that needs the right and no other of its resource; `place`: a namespace in which an object `sample` of each
 * resource exists.
 */
export function callOf(
  { resource, verb }: Right,
  place: Readonly<{ name: string; labels: object }>,
): ApiCall {
  const isNamespace = resource === 'namespaces';
  const inside = isNamespace ? undefined : place.name;
  const { name, labels } = isNamespace ? place : { name: 'sample', labels: {} };
  const path = `${pathOf(resource, inside)}/${name}`;
  const sample = (called: string) => sampleOf(resource, { name: called, labels });
  switch (verb) {
    case 'list':
      return { method: 'GET', path: `${pathOf(resource)}?limit=1` };
    case 'watch':
      return { method: 'GET', path: `${pathOf(resource)}?watch=true&timeoutSeconds=5` };
    case 'get':
      return { method: 'GET', path };
    case 'create':
      return creating(resource, sample(`${name}-new`), inside);
    case 'patch':
      return applying(path, sample(name));
    case 'delete':
      return deleting(path);
    default:
      throw new Error(`no call for ${verb}`);
  }
}
