/**
 * The kinds of objects that are read or written, with their API version and the plural in their address. This table
 * replaces the API server's discovery: each new kind needs a change anyway, for its right (RBAC).
 */
export const KINDS = {
  Namespace: { apiVersion: 'v1', plural: 'namespaces', namespaced: false },
  Node: { apiVersion: 'v1', plural: 'nodes', namespaced: false },
  ResourceQuota: { apiVersion: 'v1', plural: 'resourcequotas', namespaced: true },
  ConfigMap: { apiVersion: 'v1', plural: 'configmaps', namespaced: true },
  PersistentVolumeClaim: { apiVersion: 'v1', plural: 'persistentvolumeclaims', namespaced: true },
  Secret: { apiVersion: 'v1', plural: 'secrets', namespaced: true },
  Service: { apiVersion: 'v1', plural: 'services', namespaced: true },
  Pod: { apiVersion: 'v1', plural: 'pods', namespaced: true },
  Event: { apiVersion: 'events.k8s.io/v1', plural: 'events', namespaced: true },
  Deployment: { apiVersion: 'apps/v1', plural: 'deployments', namespaced: true },
  ReplicaSet: { apiVersion: 'apps/v1', plural: 'replicasets', namespaced: true },
  StatefulSet: { apiVersion: 'apps/v1', plural: 'statefulsets', namespaced: true },
  DaemonSet: { apiVersion: 'apps/v1', plural: 'daemonsets', namespaced: true },
  Job: { apiVersion: 'batch/v1', plural: 'jobs', namespaced: true },
  CronJob: { apiVersion: 'batch/v1', plural: 'cronjobs', namespaced: true },
  Ingress: { apiVersion: 'networking.k8s.io/v1', plural: 'ingresses', namespaced: true },
  HorizontalPodAutoscaler: {
    apiVersion: 'autoscaling/v2',
    plural: 'horizontalpodautoscalers',
    namespaced: true,
  },
  PodDisruptionBudget: { apiVersion: 'policy/v1', plural: 'poddisruptionbudgets', namespaced: true },
  NetworkPolicy: { apiVersion: 'networking.k8s.io/v1', plural: 'networkpolicies', namespaced: true },
  EndpointSlice: { apiVersion: 'discovery.k8s.io/v1', plural: 'endpointslices', namespaced: true },
  Lease: { apiVersion: 'coordination.k8s.io/v1', plural: 'leases', namespaced: true },
} as const satisfies Record<string, { apiVersion: string; plural: string; namespaced: boolean }>;

export type Kind = keyof typeof KINDS;

/**
 * What is common to all objects. Code that uses `spec`, `data`, `status` or other members has schemas of its own for
 * them.
 */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: Kind;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly generation?: number;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly {
      readonly apiVersion?: string;
      readonly kind: string;
      readonly name: string;
      readonly uid: string;
    }[];
    readonly managedFields?: readonly ManagedFields[];
    readonly finalizers?: readonly string[];
  };
  readonly [member: string]: unknown;
}

/** Who has set which fields of an object (server-side apply). */
export interface ManagedFields {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly subresource?: string;
  /** When the manager last changed the fields, by the API server's clock: RFC 3339, UTC. */
  readonly time?: string;
  /** JSON text: most of these texts are never read, and as objects they would be the greater part of each copy. */
  readonly fieldsV1?: string;
}

/** Where an object is. `namespace` is `null` for kinds without one. */
export interface ObjectAddress {
  readonly kind: Kind;
  readonly namespace: string | null;
  readonly name: string;
}
