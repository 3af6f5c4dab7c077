import type { Clock } from '../../../base/clock.ts';
import type { Identity } from '../../../base/ownership.ts';
import type { KubernetesClient } from '../client/contract.ts';
import { faultReason } from '../client/errors.ts';
import type { ObjectAddress } from '../client/kinds.ts';

/** An answer with one of these reasons doesn't say whether the Secret exists. */
const UNCERTAIN: ReadonlySet<string | null> = new Set([
  'quota',
  'denied',
  'terminating',
  'busy',
  'unavailable',
]);
/** How long the cluster may take to remove a Secret after its owner. */
const REMOVAL_MS = 15_000;
const POLL_MS = { first: 50, longest: 1_000 } as const;

/**
 * True if a Secret of ours or of others has this name; `null`: the answer doesn't say. Needs only the right to create.
 */
export async function isSecretThere(
  { client, identity }: { readonly client: KubernetesClient; readonly identity: Identity },
  { namespace, name }: ObjectAddress,
  signal: AbortSignal,
): Promise<boolean | null> {
  const labels = { 'tagyard/instance': identity.instance, 'tagyard/host': identity.host };
  const trial = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, labels, ...(namespace === null ? {} : { namespace }) },
  } as const;
  try {
    return await client.isTaken(trial, signal);
  } catch (error) {
    // The namespace isn't there, so the Secret isn't either.
    if (faultReason(error) === 'absent') return false;
    if (UNCERTAIN.has(faultReason(error))) return null;
    throw error;
  }
}

/**
 * Calls `isSo` until it is true, for as long as the cluster may take to remove a Secret whose owner was deleted. False:
 * it was never true.
 */
export async function afterRemoval(
  isSo: () => Promise<boolean>,
  clock: Clock,
  signal: AbortSignal,
): Promise<boolean> {
  const end = clock.now() + REMOVAL_MS;
  for (let pause: number = POLL_MS.first; ; pause = Math.min(2 * pause, POLL_MS.longest)) {
    if (await isSo()) return true;
    if (clock.now() >= end) return false;
    await clock.sleep(pause, { signal });
    signal.throwIfAborted();
  }
}
