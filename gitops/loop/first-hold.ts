import { systemClock } from '../../base/clock.ts';
import { SitesRepoError } from '../../sites/repo/errors.ts';
import type { HostLease } from '../../sites/repo/host-lease.ts';
import type { SitesRepo } from '../../sites/repo/sites-repo.ts';

const WAIT_MS = 4_000;

/**
 * Takes the host's lease before the proxy starts, so that a second daemon of this host fails here. If git is
 * unreachable or slow, the daemon starts anyway unless another one had the lease when git was last read: the passes
 * take the lease before they change anything. Throws `LeaseHeldError`.
 */
export async function holdBeforeStart(
  repo: Pick<SitesRepo, 'head'>,
  lease: Pick<HostLease, 'hold' | 'assertNotLost'>,
  waitMs = WAIT_MS,
): Promise<void> {
  const waited = new AbortController();
  const held = repo
    .head()
    .then(() => lease.hold())
    .then(() => true);
  const late = systemClock.sleep(waitMs, { signal: waited.signal }).then(() => false);
  const isHeld = await Promise.race([held, late]).catch((error: unknown) => {
    if (error instanceof SitesRepoError) return false;
    throw error;
  });
  waited.abort();
  if (!isHeld) await lease.assertNotLost();
}
