import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { ACCIDENTS, type Whole } from '../support/faults/accidents.ts';
import { converged, type Snapshot, type Stage, stage } from '../support/faults/stage.ts';
import type { RunningDaemon } from '../support/gitops/daemon.ts';

const SITES = Array.from({ length: 12 }, (_, number) => `site-${number}`);

describe.each([
  ['a daemon that keeps running', async (daemon: RunningDaemon) => daemon],
  [
    'a daemon that starts again',
    async (daemon: RunningDaemon, on: Stage) => {
      await daemon.kill();
      return on.start();
    },
  ],
] as const)('after a mass deletion by accident, %s', (_which, next) => {
  let on: Stage;
  let daemon: RunningDaemon;
  let whole: Whole;
  let world: Snapshot;
  beforeEach(async () => {
    on = await stage();
    const manifests = Object.fromEntries(SITES.map((site, number) => [site, on.manifest(site, number)]));
    await on.push(manifests);
    whole = { on, manifests, tip: (await on.repo.head()) ?? '' };
    daemon = await on.start();
    await eventually(async () => expect((await daemon.figures()).ready).toBe(SITES.length));
    await converged(daemon);
    // The next daemon starts with this state, which is written shortly after the sites are ready.
    await eventually(
      () => {
        const { sites } = JSON.parse(readFileSync(join(on.dir, 'state', 'state.json'), 'utf8'));
        expect(sites.filter(({ ready }: { ready: boolean }) => ready)).toHaveLength(SITES.length);
      },
      { timeoutMs: 60_000 },
    );
    world = on.snapshot();
  });
  afterEach(async () => {
    await daemon?.kill();
    await on.close();
  });

  test.each(ACCIDENTS)('removes nothing if $name, and continues after the repair', async (accident) => {
    let writes = 0;
    on.gate.watch(({ kind }) => {
      if (kind === 'world') writes += 1;
      return false;
    });
    await accident.happen(whole);
    daemon = await next(daemon, on);
    // Several passes, because the second pass confirms what the first pass observed.
    for (let round = 0; round < 3; round += 1) {
      const before = await daemon.figures();
      await daemon.call('POST', '/sync');
      await eventually(async () => {
        const after = await daemon.figures();
        if (after.lastError === null) expect(after.passes).toBeGreaterThan(before.passes);
      });
    }
    const { sites } = await daemon.sites();
    const { lastError } = await daemon.figures();
    expect(
      [lastError ?? '', ...sites.map(({ message, reason }) => `${reason} ${message}`)].join('\n'),
    ).toMatch(accident.says);
    expect(writes).toBe(0);
    expect(on.snapshot()).toEqual(world);
    const head = await on.repo.head().catch(String);
    if (head?.includes('is gone; restore it')) {
      // If the request created the branch again, the branch would contain only this site.
      const { status } = await daemon.call('POST', '/provision', on.manifest('alone', SITES.length));
      expect(status).toBe(503);
      await expect(on.repo.head()).rejects.toThrow('is gone; restore it');
    }

    await accident.repair(whole);
    await daemon.call('POST', '/sync');
    await eventually(async () => expect((await daemon.figures()).ready).toBe(SITES.length), {
      timeoutMs: 60_000,
    });
    await converged(daemon);
    expect(writes).toBe(0);
    expect(on.snapshot()).toEqual(world);
    await on.expectDelivered();
  });
});
