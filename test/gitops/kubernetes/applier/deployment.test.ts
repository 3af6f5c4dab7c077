import { expect, test } from 'vitest';
import { outageOf } from '../../../../gitops/kubernetes/applier/state/deployment.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';

/** A Deployment of two pods, of which this many are available; its newest template was rolled out, as far as is seen. */
function deployment(seen: 'seen' | 'unseen', available: number, reason = 'NewReplicaSetAvailable') {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'one', namespace: 'a', generation: 5 },
    spec: { replicas: 2 },
    status: {
      observedGeneration: seen === 'seen' ? 5 : 4,
      ...{ replicas: 2, updatedReplicas: 2, readyReplicas: available, availableReplicas: available },
      conditions: [{ type: 'Progressing', status: 'True', reason }],
    },
  } satisfies KubernetesObject;
}

const INCOMPLETE = 'rollout not complete: the newest template has 2 of 2 pods';
const NONE_AVAILABLE = 'not one of 2 pods is available';

test.each([
  ['serves', deployment('seen', 2), {}, null],
  ['has lost a pod', deployment('seen', 1), {}, null],
  ['has lost all pods', deployment('seen', 0), { isProven: true }, NONE_AVAILABLE],
  ['is being rolled out', deployment('seen', 1, 'ReplicaSetUpdated'), { isProven: true }, INCOMPLETE],
  ['has a template that its controller hasn’t seen', deployment('unseen', 2), {}, INCOMPLETE],
  ['has an annotation that its controller hasn’t seen', deployment('unseen', 2), { isProven: true }, null],
  [
    'has lost all pods, and has an annotation that its controller hasn’t seen',
    deployment('unseen', 0),
    { isProven: true },
    NONE_AVAILABLE,
  ],
  ['may be started by a gateway', deployment('unseen', 0), { mayStart: true }, null],
])('the outage of a Deployment that %s', (_, object, known, outage) => {
  expect(outageOf(object, known)).toBe(outage);
});
