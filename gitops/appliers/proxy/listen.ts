import type { Log } from '../../../base/log.ts';
import { RUNBOOKS } from '../../report/runbooks.ts';

interface Bridge {
  /** This host's address on Docker's default bridge; `null`: the bridge isn't up. */
  gateway(): Promise<string | null>;
  /** nginx is the system's: it may start before Docker, and would fail on an address that doesn't exist yet. */
  readonly isSystems: boolean;
  readonly log: Log;
}

const ALL = '0.0.0.0';

/**
 * The addresses that the proxy binds if containers have networks of their own: those of PROXY_LISTEN, and the one at
 * which processing servers reach their preview server (docs/containers.md).
 */
export async function listenAddresses(
  configured: readonly string[],
  { gateway, isSystems, log }: Bridge,
): Promise<readonly string[]> {
  if (configured.includes(ALL)) return configured;
  const address = await gateway().catch(() => null);
  if (address === null) {
    log.warn(
      {},
      `previews don’t work: Docker’s default bridge is not up. ${RUNBOOKS.docker_bridge.fixes.none}`,
    );
    return configured;
  }
  if (configured.includes(address)) return configured;
  if (isSystems) {
    log.warn(
      { address },
      `previews don’t work: add ${address} to PROXY_LISTEN, and start the system’s nginx after Docker`,
    );
    return configured;
  }
  return [...configured, address];
}
