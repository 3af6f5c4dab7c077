import type { KubernetesObject } from '../../client/kinds.ts';
import { deploymentState } from './deployment.ts';
import { ownsField } from './drift.ts';

/**
 * A Deployment with the number of pods that its apply must have. `initial`: its first number, which an autoscaler or
 * gateways change later; `null`: the object is complete as it is. Until others set the number, it is ours, and each
 * apply repeats the current one: without a number, the API server would set 1. Such an apply is only valid for the
 * version that was read, because an autoscaler may have added pods since.
 */
export function withReplicas(
  object: KubernetesObject,
  existing: KubernetesObject | undefined,
  initial: number | null,
): KubernetesObject {
  if (initial === null) return object;
  if (existing === undefined) return having(object, initial);
  const { replicas } = deploymentState(existing);
  // An autoscaler doesn't scale a Deployment whose number of pods is 0.
  if (replicas > 0 && !ownsField(existing, ['spec', 'replicas'])) return object;
  const { metadata } = object;
  const { resourceVersion } = existing.metadata;
  return {
    ...having(object, replicas > 0 ? replicas : initial),
    metadata: { ...metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
  };
}

function having(object: KubernetesObject, replicas: number): KubernetesObject {
  return { ...object, spec: { ...(object.spec as object), replicas } };
}
