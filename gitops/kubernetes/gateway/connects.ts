import { connect } from 'node:net';
import type { Clock } from '../../../base/clock.ts';
import type { Peers } from './peers.ts';

const INTERVAL_MS = 1_000;
/** As long as nginx waits for a connection. */
const TIMEOUT_MS = 300;
/** The part of the interval over which the connects are spread. The rest is enough for two failed connects. */
const SPREAD_MS = INTERVAL_MS - 2 * TIMEOUT_MS;

/**
 * True if a connection is accepted in time. The connection is ended by a reset, so that it doesn't keep a local port
 * for a minute. If this process itself is late, a connection that was accepted meanwhile counts, too.
 */
function accepts(address: string, port: number, timeoutMs = TIMEOUT_MS): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port });
    const end = (accepted: boolean) => {
      resolve(accepted);
      socket.resetAndDestroy();
    };
    socket.setTimeout(timeoutMs, () => setImmediate(end, false));
    socket.once('connect', () => end(true));
    // Errors after the first outcome change nothing.
    socket.on('error', () => end(false));
  });
}

/**
 * Connects to every peer once a second until `signal` aborts. The connects are spread over `SPREAD_MS`, and one that
 * fails is followed by another at once, so that the resolver omits a pod within two seconds of its node's loss.
 * `onRound` is called after each round.
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
      await clock.sleep((SPREAD_MS * index) / targets.length, { signal, ref: false });
      if (signal.aborted) return;
      const isAccepted = await accepts(address, port);
      peers.answered(service, { address, port }, isAccepted);
      if (!isAccepted) peers.answered(service, { address, port }, await accepts(address, port));
    });
    await Promise.all(checks);
    if (signal.aborted) return;
    onRound();
    await clock.sleep(INTERVAL_MS - (clock.now() - round), { signal, ref: false });
  }
}
