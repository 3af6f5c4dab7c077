import { afterEach, beforeEach, expect, test } from 'vitest';
import { DesiredStateReader } from '../../../gitops/desired/reader.ts';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { ZONES } from '../../support/manifest.ts';

let daemon: MemoryDaemon;
let reader: DesiredStateReader;
let older: string;
let newer: string;
/** Lets the reads of the older revision continue. */
let release: () => void;
beforeEach(async () => {
  daemon = await memoryDaemon();
  const { repo, ageIdentity } = daemon;
  await daemon.push('one', daemon.manifest('one', 0));
  older = (await repo.head()) ?? '';
  await daemon.push('two', daemon.manifest('two', 1));
  await daemon.reaches('two', 'Ready');
  newer = (await repo.head()) ?? '';
  const released = Promise.withResolvers<void>();
  release = released.resolve;
  const tree = repo.tree.bind(repo);
  repo.tree = async (revision) => {
    if (revision === older) await released.promise;
    return await tree(revision);
  };
  reader = new DesiredStateReader(repo, { host: 'tag-1', zones: ZONES, ageIdentity });
});
afterEach(() => daemon.close());

test('a read of an older revision that ends late doesn’t bring that revision back', async () => {
  const late = reader.read(older);
  await reader.read(newer);
  release();
  expect([...(await late).sites.keys()]).toEqual(['one']);
  expect(reader.revision).toBe(newer);
});

test('an older revision that is read last becomes the current one, as after a rewrite of the history', async () => {
  await reader.read(newer);
  release();
  await reader.read(older);
  expect(reader.revision).toBe(older);
});

test('a revision that is read again stays the current one', async () => {
  await reader.read(newer);
  const late = reader.read(older);
  await reader.read(newer);
  release();
  await late;
  expect(reader.revision).toBe(newer);
});
