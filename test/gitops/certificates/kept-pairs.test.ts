import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KeptPairs } from '../../../gitops/certificates/kept-pairs.ts';

test('a copy that is written while it is removed exists in the end', async () => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-kept-'));
  try {
    const kept = new KeptPairs(join(home, 'kept'));
    await kept.prepare();
    const pair = { chain: 'a chain', key: 'a key' };
    const path = kept.pathOf('a.example', pair);
    await kept.keep(path, pair);
    let again = Promise.resolve();
    await kept.keepOnly(() => {
      again = kept.keep(path, pair);
      return { paths: new Set(), stems: new Set() };
    });
    await again;
    expect(await kept.has(path)).toBe(true);
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
