import { expect, test } from 'vitest';
import { containersApplier } from '../../../../gitops/appliers/containers/applier.ts';
import type { Runtime } from '../../../../gitops/appliers/containers/runtime.ts';
import { containersSettings } from '../../../support/containers/stage.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const { signal } = new AbortController();
const never = async (): Promise<never> => {
  throw new Error('nothing is started here');
};
/** An engine without containers. */
const empty: Runtime = {
  list: async () => [],
  start: never,
  stop: never,
  resume: never,
  death: never,
  lastLines: never,
  output: never,
  remove: never,
  async *losses() {},
  close: async () => undefined,
};
const SHOP = loadedManifest('shop', 0);
const GONE = loadedManifest('gone', 1);
const addressOf = (applier: ReturnType<typeof containersApplier>, manifest = GONE) =>
  applier.desired(manifest)[0]?.spec.address;

test('full observations release the slots of removed sites, and keep those of desired ones', async () => {
  const applier = containersApplier(containersSettings('slots', '127.86'), empty);
  const desired = applier.desired(SHOP);
  const before = addressOf(applier);
  for (let passes = 0; passes < 3; passes += 1) await applier.observe(desired, signal);
  expect(addressOf(applier)).not.toBe(before);
  expect(applier.desired(SHOP).map(({ spec }) => spec.address)).toEqual(
    desired.map(({ spec }) => spec.address),
  );
});

test('an observation of some sites releases no slot', async () => {
  const applier = containersApplier(containersSettings('slots', '127.86'), empty);
  const before = addressOf(applier);
  const scope = { sites: new Set(['shop']), keys: new Set<string>() };
  for (let passes = 0; passes < 3; passes += 1) await applier.observe(applier.desired(SHOP), signal, scope);
  expect(addressOf(applier)).toBe(before);
});

test('previewing a revision assigns no slot, releases none and prunes no image', async () => {
  const images: ReadonlySet<string>[] = [];
  const pruning = {
    start: (used: ReadonlySet<string>) => void images.push(used),
    ended: async () => undefined,
  };
  const applier = containersApplier(containersSettings('slots', '127.86', { images: pruning }), empty);
  const before = addressOf(applier, SHOP);
  const editions = applier.edition?.(SHOP);
  for (let previews = 0; previews < 3; previews += 1) {
    const preview = applier.preview?.() ?? applier;
    const desired = preview.desired(GONE);
    const { changes } = preview.plan(desired, await preview.observe(desired, signal));
    expect(changes.map(({ op }) => op)).toEqual(desired.map(() => 'create'));
  }
  expect([addressOf(applier, SHOP), applier.edition?.(SHOP), images]).toEqual([before, editions, []]);
  // `other` has the port of the previewed site. That port's first address is free: no preview assigned it.
  expect(addressOf(applier, loadedManifest('other', 1))).toBe('127.86.0.1');
});
