import { limit } from '../../../base/limit.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';

const QUEUES = new WeakMap<ProxyBackend, ReturnType<typeof limit>>();

/** `install`, one batch at a time, for all appliers that use the backend. */
export async function installAlone(backend: ProxyBackend, changes: readonly ProxyChange[]) {
  const queue = QUEUES.get(backend) ?? limit(1);
  QUEUES.set(backend, queue);
  return await queue(() => backend.install(changes));
}
