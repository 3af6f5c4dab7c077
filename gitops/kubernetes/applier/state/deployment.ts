import { z } from 'zod';
import { counted } from '../../../../base/text.ts';
import type { KubernetesObject } from '../../client/kinds.ts';

const condition = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
});
const deployment = z.object({
  spec: z.object({
    replicas: z.number().default(1),
    progressDeadlineSeconds: z.number().default(600),
  }),
  status: z
    .object({
      observedGeneration: z.number().default(0),
      replicas: z.number().default(0),
      updatedReplicas: z.number().default(0),
      readyReplicas: z.number().default(0),
      availableReplicas: z.number().default(0),
      conditions: z.array(condition).default([]),
    })
    .prefault({}),
});

/** What a Deployment's controller says of it. */
interface DeploymentState {
  readonly replicas: number;
  readonly updated: number;
  readonly available: number;
  readonly ready: number;
  /** How many pods there are, of earlier templates, too. */
  readonly pods: number;
  /** The controller has seen the newest template. */
  readonly isSeen: boolean;
  /** At some time, all pods were of the newest template and available. Later losses of pods don't change this. */
  readonly isRolledOut: boolean;
  /** The rollout had no progress until its deadline. */
  readonly isLate: boolean;
  /** A rollout without progress for this long has failed. */
  readonly deadlineMs: number;
  /** Why a pod can't be created: a quota, an admission's refusal; `null`: none was refused. */
  readonly failure: string | null;
}

/** States by object: a watched copy keeps an object until it changes; its state is read many times. */
const STATES = new WeakMap<KubernetesObject, DeploymentState>();

export function deploymentState(object: KubernetesObject): DeploymentState {
  const known = STATES.get(object);
  if (known !== undefined) return known;
  const state = stateOf(object);
  STATES.set(object, state);
  return state;
}

function stateOf(object: KubernetesObject): DeploymentState {
  const { spec, status } = deployment.parse(object);
  const of = (type: string) => status.conditions.find((one) => one.type === type);
  const progressing = of('Progressing');
  const failure = of('ReplicaFailure');
  const isSeen = status.observedGeneration >= (object.metadata.generation ?? 0);
  return {
    replicas: spec.replicas,
    updated: status.updatedReplicas,
    available: status.availableReplicas,
    ready: status.readyReplicas,
    pods: status.replicas,
    isSeen,
    // Source: k8s.io/kubernetes, pkg/controller/deployment/util, DeploymentComplete.
    isRolledOut: isSeen && progressing?.reason === 'NewReplicaSetAvailable',
    isLate: isSeen && progressing?.reason === 'ProgressDeadlineExceeded',
    deadlineMs: spec.progressDeadlineSeconds * 1_000,
    failure: failure?.status === 'True' ? (failure.message ?? failure.reason ?? '') : null,
  };
}

/** True if the newest template is rolled out. */
export function isRolledOut(object: KubernetesObject): boolean {
  return deploymentState(object).isRolledOut;
}

/**
 * What keeps a Deployment from serving as it was applied, in words; `null`: nothing. `mayStart`: a gateway may have
 * asked for its pod a moment ago. `isProven`: the applied template was rolled out. What the controller hasn't seen yet
 * is then no template: annotations and the number of pods change a Deployment's generation, too.
 */
export function outageOf(
  object: KubernetesObject,
  { mayStart = false, isProven = false }: { readonly mayStart?: boolean; readonly isProven?: boolean } = {},
): string | null {
  const { replicas, updated, available, isSeen, isRolledOut: isDone } = deploymentState(object);
  // A gateway may have set the Deployment's number of pods, which isn't a rollout of a template.
  if (!isSeen && mayStart) return null;
  if (!isDone && (isSeen || !isProven))
    return `rollout not complete: the newest template has ${updated} of ${counted(replicas, 'pod')}`;
  if (replicas > 0 && available === 0 && !mayStart)
    return `not one of ${counted(replicas, 'pod')} is available`;
  return null;
}
