import { backoffMs } from '../../../../base/backoff.ts';
import type { NginxDaemon } from './daemon.ts';

/** Milliseconds after which a start counts as a success: the next end is then the first failure. */
const SETTLED_MS = 60_000;

/**
 * Starts nginx again when it ends unexpectedly: at once, then with growing pauses while it keeps ending. Its
 * configuration stays the same: no site needs a pass for this, and none counts as repaired.
 */
export function reviveNginx(daemon: NginxDaemon, restore: () => Promise<unknown>): { stop(): void } {
  let failures = 0;
  let triedAt = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  const revive = () => {
    triedAt = performance.now();
    // If it fails, a full pass reports why and tries it again.
    restore().catch(() => undefined);
  };
  const onLost = () => {
    failures = performance.now() - triedAt > SETTLED_MS ? 0 : failures + 1;
    clearTimeout(timer);
    if (failures === 0) revive();
    else timer = setTimeout(revive, backoffMs(failures, Math.random)).unref();
  };
  daemon.on('lost', onLost);
  return {
    stop() {
      daemon.off('lost', onLost);
      clearTimeout(timer);
    },
  };
}
