import { expect, test } from 'vitest';
import type { Applier } from '../../../gitops/appliers/contract.ts';
import { DesiredResources } from '../../../gitops/pass/desired-resources.ts';
import { memoryApplier } from '../../support/gitops/memory-applier.ts';
import { loadedManifest } from '../../support/manifest.ts';

test('computes the resources once per manifest and edition', () => {
  let edition = 'first';
  let computed = 0;
  const applier: Applier = {
    ...memoryApplier({
      target: 'containers',
      identity: { instance: 'test', host: 'tag-1' },
      world: new Map(),
      desired: () => [],
    }),
    desired: () => {
      computed += 1;
      return [];
    },
    edition: () => edition,
  };
  const cache = new DesiredResources();
  const manifest = loadedManifest();
  const read = () => cache.of(applier, manifest);
  expect(read()).toBe(read());
  expect(computed).toBe(1);
  edition = 'second';
  expect(read()).toBe(read());
  expect(computed).toBe(2);
});
