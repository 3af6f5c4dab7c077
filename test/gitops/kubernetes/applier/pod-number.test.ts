import { expect, test } from 'vitest';
import { withReplicas } from '../../../../gitops/kubernetes/applier/state/pod-number.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';

const rendered: KubernetesObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'one', namespace: 'a' },
  spec: { template: {} },
};
/** As the API server has it, with the number of pods set by this manager. */
const stored = (replicas: number, manager: string, operation: 'Apply' | 'Update'): KubernetesObject => ({
  ...rendered,
  metadata: {
    ...rendered.metadata,
    resourceVersion: '7',
    managedFields: [
      {
        manager: 'tagyard',
        operation: 'Apply',
        fieldsV1: JSON.stringify({ 'f:spec': { 'f:template': {} } }),
      },
      { manager, operation, fieldsV1: JSON.stringify({ 'f:spec': { 'f:replicas': {} } }) },
    ],
  },
  spec: { replicas, template: {} },
});

test('a Deployment that no autoscaler scales is applied as rendered', () => {
  expect(withReplicas(rendered, stored(4, 'tagyard', 'Apply'), null)).toBe(rendered);
});

test('a new Deployment is applied with its first number of pods', () => {
  const { metadata, spec } = withReplicas(rendered, undefined, 2);
  expect([metadata, spec]).toEqual([rendered.metadata, { replicas: 2, template: {} }]);
});

test.each([
  [
    'its current number of pods while we have set it, unless the object has changed since it was read',
    stored(4, 'tagyard', 'Apply'),
    4,
  ],
  ['its first number of pods again if others have scaled it to 0', stored(0, 'kubectl', 'Update'), 2],
])('an existing Deployment is applied with %s', (_, existing, replicas) => {
  const { metadata, spec } = withReplicas(rendered, existing, 2);
  expect(spec).toEqual({ replicas, template: {} });
  expect(metadata).toEqual({ ...rendered.metadata, resourceVersion: '7' });
});

test.each([
  ['an autoscaler', stored(5, 'kube-controller-manager', 'Update')],
  ['a person', stored(5, 'kubectl', 'Update')],
  ['an earlier version of Tagyard', stored(5, 'tagyard-initial', 'Apply')],
])('the number of pods is not applied any more once %s has set it', (_, existing) => {
  expect(withReplicas(rendered, existing, 2)).toBe(rendered);
});
