import { expect, test } from 'vitest';
import { containersApplier } from '../../../../gitops/appliers/containers/applier.ts';
import { containerName } from '../../../../gitops/appliers/containers/desired.ts';
import { FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { containersSettings } from '../../../support/containers/stage.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();

test.each([
  ['tgy1 other tag-9 acme-shop 0123abcd', 'of Tagyard instance other on host tag-9'],
  ['by hand', 'of "by hand"'],
  ['', 'of an unknown owner (no mark)'],
])('a plan that adopts a container with the mark `%s` says whose it is', async (mark, found) => {
  await using runtime = new FakeRuntime();
  const settings = containersSettings('foreign', '127.98');
  const applier = containersApplier(settings, runtime);
  const adopting = { ...loadedManifest(), adopt: true };
  const [wanted] = applier.desired(adopting);
  if (wanted === undefined) throw new Error('the site has no containers');
  const name = containerName(settings.identity.instance, wanted.spec);
  await runtime.add({ name, mark, spec: wanted.spec }, { statuses: [200] });
  // The found container has the slot, so the first observation assigns another one.
  await expect(applier.observe(applier.desired(adopting), signal)).rejects.toThrow('slots');
  const desired = applier.desired(adopting);
  const { changes, conflicts } = applier.plan(desired, await applier.observe(desired, signal));
  expect(conflicts).toEqual([]);
  expect(changes.find(({ key }) => key === wanted.key)).toMatchObject({ op: 'update', observed: { found } });
});
