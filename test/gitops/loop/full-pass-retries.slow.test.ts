import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemoryDaemon, memoryDaemon, SECRET } from '../../support/gitops/memory-daemon.ts';

let daemon: MemoryDaemon;
beforeEach(async () => {
  // Longer than the test, so that a full pass is repeated only because of its failure.
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

const failObservations = (): void => {
  daemon.control.fault = (target, at) =>
    target === 'route' && at === 'observe' ? new RetryableError('the routes answer 503') : undefined;
};

describe('a full pass with a failed observation', () => {
  test('doesn’t make the daemon ready: until a full pass has succeeded, a site without a status may still have something on this host', async () => {
    const ready = async () =>
      (await daemon.app.inject({ url: '/readyz', headers: { 'x-secret': SECRET } })).statusCode;
    expect(await ready()).toBe(200);
    failObservations();
    await daemon.push('one', null);
    await daemon.restart({ known: null });
    await daemon.reaches('two', 'ObserveFailed');
    await daemon.fullPass();
    expect(await ready()).toBe(503);
    daemon.control.fault = () => undefined;
    daemon.loop.sync();
    await daemon.reaches('one', 'Removed');
    expect(await ready()).toBe(200);
    // Later failures don't change that.
    failObservations();
    daemon.loop.sync();
    await daemon.reaches('two', 'ObserveFailed');
    expect(await ready()).toBe(200);
  });

  test('is repeated although a pass over one site succeeded in between', async () => {
    // Makes the pauses as long as possible, so that the pass over one site comes before the next full pass.
    vi.spyOn(Math, 'random').mockReturnValue(1);
    failObservations();
    daemon.loop.sync();
    await daemon.reaches('one', 'ObserveFailed');
    await daemon.reaches('two', 'ObserveFailed');
    daemon.control.fault = () => undefined;
    const { revision } = await daemon.push('two', daemon.manifest('two', 1, { name: 'Renamed' }));
    for (const site of ['two', 'one']) {
      await eventually(() =>
        expect(daemon.loop.status(site)).toMatchObject({ reason: 'Ready', applied: revision }),
      );
    }
  });

  test('is repeated after the same pause as if no trigger had come in between', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(1);
    failObservations();
    daemon.loop.sync();
    await daemon.reaches('one', 'ObserveFailed');
    // Each of these passes fails, too. If all ten failures counted, the pause would be minutes long.
    for (let trigger = 0; trigger < 10; trigger += 1) await daemon.fullPass();
    daemon.control.fault = () => undefined;
    await daemon.reaches('one', 'Ready');
    await daemon.reaches('two', 'Ready');
  });
});
