import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { podAccount } from '../../../../gitops/kubernetes/client/pod-account.ts';

const tokenOf = (claims: object) => `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.c2ln`;
const serviceaccount = { name: 'tagyard', uid: 'a-uid' };

test.each([
  [
    'of a pod',
    { token: tokenOf({ 'kubernetes.io': { pod: { name: 'p', uid: 'u' }, serviceaccount } }) },
    'a-uid',
  ],
  ['that belongs to no pod', { token: tokenOf({ 'kubernetes.io': { serviceaccount } }) }, null],
  ['that isn’t Kubernetes’ own', { token: 'k8s-aws-v1.abc' }, null],
  ['that isn’t there', { username: 'u', password: 'p' }, null],
])('a token %s names this installation: %o', async (_, user, expected) => {
  const folder = await mkdtemp(join(tmpdir(), 'tagyard-account-'));
  const kubeconfig = join(folder, 'config');
  const config = {
    clusters: [{ name: 'c', cluster: { server: 'https://api.test:6443' } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
    'current-context': 'x',
  };
  await writeFile(kubeconfig, JSON.stringify(config));
  expect(await podAccount({ kubeconfig })).toBe(expected);
  await rm(folder, { recursive: true });
});
