import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { bundleWorker } from '../../edge/bundle.ts';
import type { Plugin } from '../../plugins/contract.ts';
import { ALWAYS_ON, FAIL_CLOSED } from '../../plugins/document.ts';

test('the plugins that documents treat as always on or as failing closed are those that say so', async () => {
  // Bundled, because Node can't import the page scripts.
  const list = await bundleWorker(fileURLToPath(new URL('../../plugins/index.ts', import.meta.url)));
  const { PLUGINS }: { PLUGINS: readonly Plugin[] } = await import(
    `data:text/javascript,${encodeURIComponent(list)}`
  );
  const always = PLUGINS.filter((plugin) => plugin.kind === 'mandatory' && plugin.alwaysOn);
  expect(always.map(({ name }) => name)).toEqual(ALWAYS_ON);
  expect(PLUGINS.filter(({ failsClosed }) => failsClosed).map(({ name }) => name)).toEqual(FAIL_CLOSED);
});
