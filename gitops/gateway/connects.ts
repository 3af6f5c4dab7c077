import { connect } from 'node:net';
import type { Clock } from '../base/clock.ts';
import type { Peers } from './peers.ts';

const INTERVAL_MS = 1_000;
const TIMEOUT_MS = 500;

/** True if a connection is accepted in time. It is ended by a reset, so that it keeps no port of ours for a minute. */
function accepts(address: string, port: number, timeoutMs = TIMEOUT_MS): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (accepted: boolean) => {
      resolve(accepted);
      socket.resetAndDestroy();
    };
    socket.setTimeout(timeoutMs, () => end(false));
    socket.once('connect', () => end(true));
    // Later errors of a socket that is done with are of no interest.
    socket.on('error', () => end(false));
  });
}

/**
 * Connects to every peer once a second, spread over it, until `signal` aborts. `onRound` is called after each round.
 */
export async function checkPeers(
  peers: Peers,
  clock: Clock,
  { signal, onRound }: { signal: AbortSignal; onRound: () => void },
): Promise<void> {
  while (!signal.aborted) {
    const round = clock.now();
    const targets = peers.toConnect(round);
    const checks = targets.map(async ({ service, address, port }, index) => {
      await clock.sleep(((INTERVAL_MS - TIMEOUT_MS) * index) / targets.length, { signal, ref: false });
      if (signal.aborted) return;
      peers.answered(service, { address, port }, await accepts(address, port));
    });
    await Promise.all(checks);
    if (signal.aborted) return;
    onRound();
    await clock.sleep(INTERVAL_MS - (clock.now() - round), { signal, ref: false });
  }
}
