import { edgeStore } from '../../../gitops/appliers/edge/store.ts';
import { type ApiLimits, REAL_LIMITS } from '../../../sites/local/cloudflare/api/limits.ts';
import { fakeClock } from '../fake-clock.ts';
import { EMULATOR_SCRIPT, startEmulator } from './emulator.ts';
import { startFaultyCloudflare } from './faulty.ts';

/** An emulator behind a proxy that injects faults, a client of it, and the common parts of conformance setups. */
export async function cloudflareWorld(limits: Partial<ApiLimits> = {}) {
  const clock = fakeClock();
  const emulator = await startEmulator({ now: clock.date, limits: { ...REAL_LIMITS, ...limits } });
  const faulty = await startFaultyCloudflare(emulator.url);
  const client = emulator.client({ url: faulty.url, timeoutMs: 5000 });
  return {
    emulator,
    faulty,
    client,
    /** The clock that the emulator reads. */
    clock,
    store: edgeStore(client, EMULATOR_SCRIPT),
    async breakObserve() {
      faulty.plan({ kind: 'truncate' }, (method) => method === 'GET', Number.POSITIVE_INFINITY);
      return async () => faulty.heal();
    },
    async close() {
      await faulty.close();
      await emulator.close();
    },
  };
}

export type CloudflareWorld = Awaited<ReturnType<typeof cloudflareWorld>>;
