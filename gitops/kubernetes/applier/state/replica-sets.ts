import { z } from 'zod';
import type { KubernetesClient } from '../../client/contract.ts';
import type { KubernetesObject } from '../../client/kinds.ts';

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

/**
 * The ReplicaSets of these sites, in the namespace or, with `null`, in all. They are listed where they are needed, which is
 * seldom: a watched copy would get a new version of a ReplicaSet with each change of its pods.
 */
export async function replicaSetsOf(
  client: KubernetesClient,
  { namespace, sites }: { readonly namespace: string | null; readonly sites: readonly string[] },
  signal: AbortSignal,
): Promise<readonly KubernetesObject[]> {
  const place = namespace === null ? {} : { namespace };
  const labels = `tagyard/site in (${sites.join(',')})`;
  return (await client.list({ kind: 'ReplicaSet', ...place, labels }, signal)).items;
}

/** The revisions of a Deployment that have a ReplicaSet, the newest first. */
export async function revisionsOf(
  client: KubernetesClient,
  { metadata }: KubernetesObject,
  signal: AbortSignal,
): Promise<Revision[]> {
  const { uid, namespace = null, labels: { 'tagyard/site': site } = {} } = metadata;
  if (site === undefined) return [];
  const sets = await replicaSetsOf(client, { namespace, sites: [site] }, signal);
  return sets
    .filter((set) => ownersOf(set).some((owner) => owner === uid))
    .map(revisionOf)
    .sort((a, b) => b.number - a.number);
}

/** The uids of the owners of an object. */
export function ownersOf({ metadata: { ownerReferences = [] } }: KubernetesObject): string[] {
  return ownerReferences.map(({ uid }) => uid);
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
