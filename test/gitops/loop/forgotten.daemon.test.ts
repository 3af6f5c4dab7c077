import { afterEach, beforeEach, expect, test } from 'vitest';
import { type MemoryDaemon, memoryDaemon } from '../../support/gitops/memory-daemon.ts';
import { movableClock } from '../../support/movable-clock.ts';
import { privateEntries } from '../../support/private-entries.ts';

const clock = movableClock();
let daemon: MemoryDaemon;
beforeEach(async () => {
  daemon = await memoryDaemon({ clock });
});
afterEach(() => daemon.close());

/** What the loop and the objects it works with keep, apart from the cache of recent runs, which has a limit. */
const kept = () =>
  Object.fromEntries(
    Object.entries(privateEntries(daemon.loop)).filter(([path]) => !path.includes('#recent.')),
  );

/** A site comes, is repaired, fails and is removed; the next revision ends its status. */
async function live(site: string, number: number): Promise<void> {
  await daemon.push(site, daemon.manifest(site, number));
  await daemon.reaches(site, 'Ready');
  for (const key of daemon.of('kv', site)) daemon.world('kv').delete(key);
  await daemon.fullPass();
  await daemon.reaches(site, 'Ready');
  daemon.control.before = () => {
    throw new Error('it fails');
  };
  await daemon.push(site, daemon.manifest(site, number, { name: 'Changed' }));
  await daemon.reaches(site, 'Retrying');
  daemon.control.before = () => undefined;
  // The pause before the first retry is at most a second.
  clock.advance(60_000);
  await daemon.reaches(site, 'Ready');
  await daemon.push(site, null);
  await daemon.reaches(site, 'Removed');
  await daemon.push('lasting', daemon.manifest('lasting', 0, { name: `After ${site}` }));
  await daemon.fullPass();
  expect(daemon.loop.statuses().map((status) => status.site)).toEqual(['lasting']);
}

test('the loop keeps nothing of sites that were removed', async () => {
  await daemon.push('lasting', daemon.manifest('lasting', 0));
  await live('first', 1);
  const before = kept();
  // Proves that `kept` still finds the loop's state. If it found none, any two results would be equal.
  expect(before).toMatchObject({
    '#statuses.#statuses': 1,
    '#statuses.#deps.inventory.#resources': 1,
    '#runs.#deps.repairLoops.#repairs': 1,
    '#runs.#endedAt': 1,
  });
  for (const number of [2, 3]) {
    // Repairs are counted for ten minutes.
    clock.advance(600_000);
    await live(`site-${number}`, number);
  }
  expect(kept()).toEqual(before);
});
