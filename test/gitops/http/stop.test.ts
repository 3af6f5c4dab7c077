import { expect, test } from 'vitest';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { memoryDaemon } from '../../support/gitops/memory-daemon.ts';

const WAIT_MS = 60_000;
const NEVER_MS = 2 ** 31;

test('a stop ends the requests that wait for the end of a change', async () => {
  // On this clock, the wait ends only by a signal.
  const sleep: Clock['sleep'] = (ms, options) => systemClock.sleep(ms === WAIT_MS ? NEVER_MS : ms, options);
  const daemon = await memoryDaemon({ clock: { ...systemClock, sleep } });
  const begun = Promise.withResolvers<void>();
  const applied = Promise.withResolvers<void>();
  daemon.control.before = () => {
    begun.resolve();
    return applied.promise;
  };
  const waiting = daemon.call('POST', '/provision?wait=60', daemon.manifest('shop', 0));
  await begun.promise;
  await daemon.app.close();
  expect(await waiting).toMatchObject({ body: { code: 'still_running' } });
  applied.resolve();
  await daemon.close();
});
