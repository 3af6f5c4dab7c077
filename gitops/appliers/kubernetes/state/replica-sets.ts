import { z } from 'zod';
import type { KubernetesObject } from '../../../clients/kubernetes/kinds.ts';
import type { Copies } from './copies.ts';

/** The annotation with the revision of the Deployment; set by the Deployment's controller. */
const REVISION = 'deployment.kubernetes.io/revision';
/** The label that says to which ReplicaSet a pod belongs; set by the Deployment's controller. */
const TEMPLATE_HASH = 'pod-template-hash';

const template = z.looseObject({
  metadata: z.looseObject({ labels: z.record(z.string(), z.string()).default({}) }).prefault({}),
});
const replicaSet = z.looseObject({
  spec: z.looseObject({ template }),
  status: z.looseObject({ availableReplicas: z.number().default(0) }).prefault({}),
});

/** One template of a Deployment that still has a ReplicaSet. */
interface Revision {
  readonly number: number;
  readonly available: number;
  /** The value of `pod-template-hash` of its pods. */
  readonly hash: string;
  /** The template as it was applied. */
  readonly template: object;
}

/** The revisions of a Deployment that have a ReplicaSet, the newest first. */
export function revisionsOf(copies: Copies, deployment: KubernetesObject): Revision[] {
  const { uid } = deployment.metadata;
  return [...copies.of('ReplicaSet')]
    .filter(({ metadata }) => metadata.ownerReferences?.some((one) => one.uid === uid))
    .map(revisionOf)
    .sort((a, b) => b.number - a.number);
}

function revisionOf(object: KubernetesObject): Revision {
  const { spec, status } = replicaSet.parse(object);
  const { [TEMPLATE_HASH]: hash = '', ...labels } = spec.template.metadata.labels;
  return {
    number: Number(object.metadata.annotations?.[REVISION] ?? 0),
    available: status.availableReplicas,
    hash,
    template: { ...spec.template, metadata: { ...spec.template.metadata, labels } },
  };
}

/** The number of the revision that a Deployment has now; 0: its controller hasn't numbered it. */
export function revisionNumber({ metadata }: KubernetesObject): number {
  return Number(metadata.annotations?.[REVISION] ?? 0);
}

/** The names of Secrets by ReplicaSet: a copy keeps an object until it changes, and there may be thousands. */
const NAMED = new WeakMap<KubernetesObject, readonly string[]>();

/** The Secrets that the templates of ReplicaSets name, as `<namespace>/<name>`. */
export function secretsInUse(copies: Copies): ReadonlySet<string> {
  const names = new Set<string>();
  for (const set of copies.of('ReplicaSet')) {
    const named = NAMED.get(set) ?? secretsNamedBy(set);
    NAMED.set(set, named);
    for (const name of named) names.add(`${set.metadata.namespace ?? ''}/${name}`);
  }
  return names;
}

/**
 * The Secrets that a pod template names. The forms are `secretRef.name`, `secretKeyRef.name` and `secret.secretName`.
 */
export function secretsNamedBy({ spec }: KubernetesObject): string[] {
  const names: string[] = [];
  visit(spec, (member, value) => {
    const named = value as { name?: unknown; secretName?: unknown };
    const name = member === 'secret' ? named.secretName : named.name;
    const isSecret = member === 'secret' || member === 'secretRef' || member === 'secretKeyRef';
    if (isSecret && typeof name === 'string') names.push(name);
  });
  return names;
}

function visit(value: unknown, found: (member: string, value: object) => void): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [member, inner] of Object.entries(value)) {
    if (typeof inner !== 'object' || inner === null) continue;
    found(member, inner);
    visit(inner, found);
  }
}
