import { readFile } from 'node:fs/promises';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import type { Endpoint } from './runtime.ts';

/** How long to wait, in milliseconds, for connections to end after the proxy switched to another endpoint. */
export interface Drain {
  /** The shortest wait: a proxy may have accepted requests that it has not forwarded yet. */
  readonly leastMs: number;
  /** The longest wait. Connections that are still open after it are cut. */
  readonly mostMs: number;
}

const INTERVAL_MS = 100;
/** The kernel closes the sockets of an ended process at once or a little later. */
const RELEASE_TIMEOUT_MS = 10_000;

/** States of a TCP socket in the kernel's table (`include/net/tcp_states.h`). */
const ESTABLISHED = '01';
const SYN_SENT = '02';
const LISTEN = '0A';

/** Waits until no process on this host is connected to `endpoint`, within the bounds of `drain`. */
export async function drained(
  endpoint: Endpoint,
  { leastMs, mostMs }: Drain,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<void> {
  const deadline = clock.now() + mostMs;
  await clock.sleep(Math.min(leastMs, mostMs), { signal });
  signal.throwIfAborted();
  while (clock.now() < deadline && (await hasConnections(endpoint))) {
    await clock.sleep(INTERVAL_MS, { signal });
    signal.throwIfAborted();
  }
}

/** Waits until no process listens on `endpoint`. Throws `RetryableError` after ten seconds. */
export async function released(
  endpoint: Endpoint,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<void> {
  const deadline = clock.now() + RELEASE_TIMEOUT_MS;
  while (await isListening(endpoint)) {
    if (clock.now() >= deadline) {
      throw new RetryableError(`another process still listens on ${endpoint.address}:${endpoint.port}`);
    }
    await clock.sleep(INTERVAL_MS, { signal });
    signal.throwIfAborted();
  }
}

async function hasConnections(endpoint: Endpoint): Promise<boolean> {
  const peer = tableAddress(endpoint);
  return (await readSockets()).some(({ remote, state }) => remote === peer && OPEN.has(state));
}
const OPEN: ReadonlySet<string> = new Set([ESTABLISHED, SYN_SENT]);

async function isListening(endpoint: Endpoint): Promise<boolean> {
  const own = tableAddress(endpoint);
  return (await readSockets()).some(({ local, state }) => local === own && state === LISTEN);
}

/** IPv4 sockets of this network namespace (proc(5), `/proc/net/tcp`). */
async function readSockets(): Promise<{ local: string; remote: string; state: string }[]> {
  const [, ...lines] = (await readFile('/proc/net/tcp', 'utf8')).trimEnd().split('\n');
  return lines.map((line) => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    return { local, remote, state };
  });
}

/** In the table, `127.0.0.1:8080` is `0100007F:1F90`: the address is a little-endian number. */
function tableAddress({ address, port }: Endpoint): string {
  const octets = address.split('.').map((octet) => hex(Number(octet), 2));
  return `${octets.toReversed().join('')}:${hex(port, 4)}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
