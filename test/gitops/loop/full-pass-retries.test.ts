import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../gitops/base/clock.ts';
import { RetryableError } from '../../../gitops/base/errors.ts';
import { Schedule } from '../../../gitops/loop/schedule.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  // A look at everything comes again by its failure or not at all.
  daemon = await memoryDaemon({ intervalSeconds: 3600 });
  for (const [number, site] of ['one', 'two'].entries())
    await daemon.push(site, daemon.manifest(site, number));
  for (const site of ['one', 'two']) await daemon.reaches(site, 'Ready');
  await daemon.fullPass();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await daemon.close();
});

const unreadable = (): void => {
  daemon.control.fault = (target, at) =>
    target === 'route' && at === 'observe' ? new RetryableError('the routes answer 503') : undefined;
};
describe('a look at everything that fails', () => {
  test('is no look: until one goes well, nobody is told that what isn’t known isn’t there', async () => {
    const ready = async () =>
      (await daemon.app.inject({ url: '/readyz', headers: { 'x-secret': SECRET } })).statusCode;
    expect(await ready()).toBe(200);
    unreadable();
    await daemon.push('one', null);
    await daemon.restart({ known: null });
    await daemon.reaches('two', 'ObserveFailed');
    await daemon.fullPass();
    expect(await ready()).toBe(503);
    daemon.control.fault = () => undefined;
    daemon.loop.sync();
    await daemon.reaches('one', 'Removed');
    expect(await ready()).toBe(200);
    // Later ones say nothing of what is known by now.
    unreadable();
    daemon.loop.sync();
    await daemon.reaches('two', 'ObserveFailed');
    expect(await ready()).toBe(200);
  });

  test('is made again although a look at one site went well meanwhile', async () => {
    // The longest pauses, so that the look at one site comes before the next look at everything.
    vi.spyOn(Math, 'random').mockReturnValue(1);
    unreadable();
    daemon.loop.sync();
    await daemon.reaches('one', 'ObserveFailed');
    await daemon.reaches('two', 'ObserveFailed');
    daemon.control.fault = () => undefined;
    await daemon.push('two', daemon.manifest('two', 1, { name: 'Renamed' }));
    await daemon.reaches('two', 'Ready');
    expect(await daemon.reaches('one', 'Ready')).toMatchObject({ applied: await daemon.repo.head() });
  });

  test('comes again no later for all that wakes the daemon in between', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1);
    unreadable();
    daemon.loop.sync();
    await daemon.reaches('one', 'ObserveFailed');
    // Each of these finds the routes unreadable too: ten failures in a row would make the pause minutes long.
    for (let wake = 0; wake < 10; wake += 1) await daemon.fullPass();
    daemon.control.fault = () => undefined;
    await daemon.reaches('one', 'Ready');
    await daemon.reaches('two', 'Ready');
  });

  test.each([
    ['waits as long as the other side asked for', [3600], 3600],
    ['waits for the one that asks for most', [60, 7200, 1], 7200],
  ])('%s', (_what, asked, seconds) => {
    const look = new Schedule(systemClock);
    look.failed(asked.map((retryAfter) => new RetryableError('too many calls', { retryAfter })));
    const now = performance.now();
    expect(look.at).toBeGreaterThan(now + (seconds - 60) * 1000);
    // A failure in between that asks for nothing changes nothing.
    const { at } = look;
    look.failed([new Error('no route to host')]);
    expect(look.at).toBe(at);
    look.succeeded();
    expect(look.at).toBe(Number.POSITIVE_INFINITY);
  });
});
