import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { KeptPairs } from '../../../gitops/certificates/kept-pairs.ts';

test('a copy that is written and removed at the same time exists in the end', async () => {
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

test('a copy for a name of 238 characters is written, found and kept', async () => {
  const home = await mkdtemp(join(tmpdir(), 'tagyard-kept-'));
  try {
    const kept = new KeptPairs(home);
    const stem = `${'a.'.repeat(118)}zz`;
    const pair = { chain: 'a chain', key: 'a key' };
    const path = kept.pathOf(stem, pair);
    await kept.keep(path, pair);
    await kept.keepOnly(() => ({ paths: new Set(), stems: new Set([stem]) }));
    const again = new KeptPairs(home);
    await again.prepare();
    expect(await again.newest([stem], () => 'found')).toEqual({ path, result: 'found' });
    expect(await again.newest([`${stem.slice(0, -1)}y`], () => 'found')).toBeNull();
  } finally {
    await rm(home, { recursive: true, force: true });
  }
});
