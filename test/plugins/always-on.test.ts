import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { bundleWorker } from '../../edge/bundle.ts';
import type { Plugin } from '../../plugins/contract.ts';
import { ALWAYS_ON } from '../../plugins/document.ts';

test('the plugins that the API and manifests treat as always on are those that say so', async () => {
  // Bundled, because Node can't import the page scripts.
  const list = await bundleWorker(fileURLToPath(new URL('../../plugins/index.ts', import.meta.url)));
  const { PLUGINS }: { PLUGINS: readonly Plugin[] } = await import(
    `data:text/javascript,${encodeURIComponent(list)}`
  );
  const always = PLUGINS.filter((plugin) => plugin.kind === 'mandatory' && plugin.alwaysOn);
  expect(always.map(({ name }) => name)).toEqual(ALWAYS_ON);
});
