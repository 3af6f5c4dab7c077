import { expect, test } from 'vitest';
import { SecretsInUse } from '../../../../gitops/kubernetes/applier/state/secrets-in-use.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';

const NAMESPACE = 'sites';
const signal = AbortSignal.timeout(60_000);

const deployment = (uid: string, { revision = '1', revisionHistoryLimit = 2 } = {}): KubernetesObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name: `tag-acme-${uid}`,
    namespace: NAMESPACE,
    uid,
    annotations: { 'deployment.kubernetes.io/revision': revision },
  },
  spec: { revisionHistoryLimit },
});

/** A ReplicaSet whose template names the Secret. */
const replicaSet = (owner: string, number: number, secret: string) => ({
  metadata: {
    name: `tag-acme-${owner}-${number}`,
    namespace: NAMESPACE,
    labels: { 'tagyard/site': 'acme' },
    ownerReferences: [{ kind: 'Deployment', name: `tag-acme-${owner}`, uid: owner }],
  },
  spec: {
    template: { spec: { containers: [{ env: [{ valueFrom: { secretKeyRef: { name: secret } } }] }] } },
  },
});

/** A cluster with these ReplicaSets, and how many times they were read. */
async function cluster(sets: readonly object[]) {
  const opened = await openedScripted((_, response) => {
    response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: sets }));
  });
  const inUse = new SecretsInUse(opened.client, null);
  return {
    async of(...deployments: (KubernetesObject | undefined)[]) {
      const found = await inUse.of([{ site: 'acme', namespace: NAMESPACE, deployments }], signal);
      return [[...found].sort(), opened.server.seen.length];
    },
    [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose](),
  };
}

const processing = deployment('processing');
const preview = deployment('preview');
const SETS = [
  replicaSet('processing', 1, 'first'),
  replicaSet('processing', 2, 'second'),
  replicaSet('preview', 1, 'first'),
];
const NAMES = ['sites/first', 'sites/second'];

test('the Secrets of all ReplicaSets of a site are in use, and are read again after another rollout', async () => {
  await using found = await cluster(SETS);
  expect(await found.of(processing, preview)).toEqual([NAMES, 1]);
  expect(await found.of(processing, deployment('preview'))).toEqual([NAMES, 1]);
  expect(await found.of(processing, deployment('preview', { revision: '2' }))).toEqual([NAMES, 2]);
});

test.for([
  ['because a Deployment is missing', SETS, [processing, undefined]],
  [
    'because a ReplicaSet has another owner',
    [...SETS, replicaSet('deleted', 1, 'first')],
    [processing, preview],
  ],
  [
    'because a Deployment has more of them than it keeps',
    SETS,
    [deployment('processing', { revisionHistoryLimit: 0 }), preview],
  ],
] as const)(
  'ReplicaSets are read each time, not only after another rollout, %s',
  async ([, sets, deployments]) => {
    await using found = await cluster(sets);
    expect(await found.of(...deployments)).toEqual([NAMES, 1]);
    expect(await found.of(...deployments)).toEqual([NAMES, 2]);
  },
);

test('without sites, nothing is read', async () => {
  await using opened = await openedScripted((_, response) => void response.writeHead(500).end());
  expect(await new SecretsInUse(opened.client, null).of([], signal)).toEqual(new Set());
  expect(opened.server.seen).toEqual([]);
});
