import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { TerminalError } from '../../../../base/errors.ts';
import { siteObjects } from '../../../../gitops/kubernetes/applier/objects/site.ts';
import { siteResources } from '../../../../gitops/kubernetes/applier/site-resources.ts';
import { amountOf } from '../../../../gitops/kubernetes/applier/state/quantity.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const render = (manifest: LoadedManifest) =>
  siteObjects(manifest, {
    identity: { instance: 'shops', host: 'tag-1' },
    namespace: null,
    admitCidrs: [],
    gatewayNamespace: null,
    originPort: 443,
    edition: () => '',
  });
const acme = loadedManifest('acme-shop', 0);

test('each object of a site is one resource of one target, with its namespace in its key', () => {
  const objects = siteResources(acme, 'objects', render);
  const workloads = siteResources(acme, 'workloads', render);
  expect(objects.length + workloads.length).toBe(render(acme).length);
  const namespace = `tagyard-shops-${acme.client}`;
  expect(workloads.map(({ key }) => key)).toEqual([
    `${namespace}/Deployment/tag-acme-shop-processing`,
    `${namespace}/Deployment/tag-acme-shop-preview`,
  ]);
  expect(workloads[0]?.summary).toMatch(/of sha256:aaaaaaaaaaaa, 2 pods or more$/);
});

test('a resource shows no secret, and removes each form of it from what a tag server has printed', () => {
  const secret = acme.config.reveal();
  const all = [...siteResources(acme, 'objects', render), ...siteResources(acme, 'workloads', render)];
  const shown = all
    .map((one) => `${JSON.stringify(one)} ${inspect(one.spec, { depth: 9 })} ${one.spec}`)
    .join();
  expect(shown).not.toContain(secret);
  // The form in which a Secret has it.
  expect(shown).not.toContain(Buffer.from(secret).toString('base64'));
  const printed = `config ${secret} is ${Buffer.from(secret, 'base64')}, auth s3cret-auth-t0ken`;
  expect(all[0]?.spec.redacted(printed)).toBe('config [secret] is [secret], auth [secret]');
});

test('a site that a cluster can’t run keeps its objects, and its Deployments say why they aren’t applied', () => {
  const refusing = (manifest: LoadedManifest) => {
    if (manifest.policy !== undefined) throw new TerminalError('nothing serves its policy script');
    return render(manifest);
  };
  const policy = { hash: 'a'.repeat(16), text: '' } as unknown as NonNullable<LoadedManifest['policy']>;
  const refused = { ...acme, policy };
  expect(siteResources(refused, 'objects', refusing)).toEqual(siteResources(acme, 'objects', render));
  const [first] = siteResources(refused, 'workloads', refusing);
  expect(first?.spec.refusal).toBe('nothing serves its policy script');
  expect(first?.hash).not.toBe(siteResources(acme, 'workloads', render)[0]?.hash);
});

test.each([
  ['500m', 0.5],
  ['2', 2],
  ['1Gi', 2 ** 30],
  ['1k', 1000],
  ['1e3', 1000],
  ['15E-1', 1.5],
  ['1E', 1e18],
  ['2Ei', 2 ** 61],
  ['5n', 5e-9],
  ['100u', 1e-4],
  ['.5', 0.5],
  ['5.', 5],
  ['+1.5Gi', 1.5 * 2 ** 30],
  ['-1', -1],
  ['1e', 0],
  ['.', 0],
  ['none', 0],
])('the quantity %s is %d', (text, amount) => {
  expect(amountOf(text)).toBeCloseTo(amount, 12);
});
