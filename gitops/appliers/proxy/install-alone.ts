import { limit } from '../../../base/limit.ts';
import type { Target } from '../contract.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';

interface Shared {
  readonly queue: ReturnType<typeof limit>;
  /** What must be served for each target, as of its last observation of all sites. */
  readonly expected: Map<Target, readonly ProxyChange[]>;
}

const SHARED = new WeakMap<ProxyBackend, Shared>();

function sharedOf(backend: ProxyBackend): Shared {
  const shared = SHARED.get(backend) ?? { queue: limit(1), expected: new Map() };
  SHARED.set(backend, shared);
  return shared;
}

export function expectInstalled(backend: ProxyBackend, target: Target, all: readonly ProxyChange[]): void {
  sharedOf(backend).expected.set(target, all);
}

/** `install`, one batch at a time, for all appliers that use the backend. */
export async function installAlone(backend: ProxyBackend, changes: readonly ProxyChange[]) {
  const { queue, expected } = sharedOf(backend);
  return await queue(() => backend.install(changes, [...expected.values()].flat()));
}
