import { expect, test } from 'vitest';
import { formatMark } from '../../../../base/ownership.ts';
import { containersApplier } from '../../../../gitops/appliers/containers/applier.ts';
import { containerName } from '../../../../gitops/appliers/containers/desired.ts';
import { FakeRuntime } from '../../../support/containers/fake-runtime.ts';
import { containersSettings } from '../../../support/containers/stage.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const late = () => new Promise<number>(() => undefined);

test.each([
  ['one answer of a container is late', [late, 200], []],
  ['a container doesn’t answer any more', [late, late], ['update']],
] as const)('an observation during which %s', async (_what, statuses, ops) => {
  await using runtime = new FakeRuntime();
  const settings = containersSettings('late', '127.80');
  const applier = containersApplier(settings, runtime);
  const desired = applier.desired(loadedManifest()).filter(({ spec }) => spec.role === 'processing');
  for (const { spec, site, hash } of desired) {
    const mark = formatMark(settings.identity, site, hash);
    await runtime.add({ name: containerName('late', spec), mark, spec }, { statuses });
  }
  const { changes } = applier.plan(desired, await applier.observe(desired, signal));
  expect(changes.map(({ op }) => op)).toEqual(ops);
});
