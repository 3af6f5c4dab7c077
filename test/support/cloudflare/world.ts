import { edgeStore } from '../../../gitops/appliers/edge/store.ts';
import { EMULATOR_SCRIPT, startEmulator } from './emulator.ts';
import { startFaultyCloudflare } from './faulty.ts';

/** An emulator behind a proxy that injects faults, a client of it, and the common parts of conformance setups. */
export async function cloudflareWorld() {
  const emulator = await startEmulator();
  const faulty = await startFaultyCloudflare(emulator.url);
  const client = emulator.client({ url: faulty.url, timeoutMs: 2000 });
  return {
    emulator,
    faulty,
    client,
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
