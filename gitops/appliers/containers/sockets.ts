import { readFile } from 'node:fs/promises';
import { setTimeout as wait } from 'node:timers/promises';
import { RetryableError } from '../../base/errors.ts';
import type { Endpoint } from './runtime.ts';

/** How long traffic that was sent elsewhere may take to run dry, milliseconds. */
export interface Drain {
  /** For requests that a proxy has accepted and not yet handed on. */
  readonly leastMs: number;
  /** Whoever is still connected then is cut off. */
  readonly mostMs: number;
}

const INTERVAL_MS = 100;
/** A socket outlives its process by the time that the kernel takes to end it, no more. */
const RELEASE_MS = 10_000;

/** States of a TCP socket in the kernel's table (`include/net/tcp_states.h`). */
const ESTABLISHED = '01';
const SYN_SENT = '02';
const LISTEN = '0A';

/** Waits until nobody on this host is connected to `endpoint`, within the bounds of `drain`. */
export async function drained(
  endpoint: Endpoint,
  { leastMs, mostMs }: Drain,
  signal: AbortSignal,
): Promise<void> {
  const deadline = performance.now() + mostMs;
  await wait(Math.min(leastMs, mostMs), undefined, { signal });
  while (performance.now() < deadline && (await hasConnections(endpoint))) {
    await wait(INTERVAL_MS, undefined, { signal });
  }
}

/** Waits until nothing listens on `endpoint`; throws `RetryableError` where something still does. */
export async function released(endpoint: Endpoint, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + RELEASE_MS;
  while (await isListening(endpoint)) {
    if (performance.now() >= deadline) {
      throw new RetryableError(`${endpoint.address}:${endpoint.port} is still held by somebody`);
    }
    await wait(INTERVAL_MS, undefined, { signal });
  }
}

async function hasConnections(endpoint: Endpoint): Promise<boolean> {
  const peer = inTable(endpoint);
  return (await table()).some(({ remote, state }) => remote === peer && OPEN.has(state));
}
const OPEN: ReadonlySet<string> = new Set([ESTABLISHED, SYN_SENT]);

async function isListening(endpoint: Endpoint): Promise<boolean> {
  const own = inTable(endpoint);
  return (await table()).some(({ local, state }) => local === own && state === LISTEN);
}

/** IPv4 sockets of this network namespace, by proc(5), `/proc/net/tcp`. */
async function table(): Promise<{ local: string; remote: string; state: string }[]> {
  const [, ...lines] = (await readFile('/proc/net/tcp', 'utf8')).trimEnd().split('\n');
  return lines.map((line) => {
    const [, local = '', remote = '', state = ''] = line.trim().split(/\s+/);
    return { local, remote, state };
  });
}

/** `127.0.0.1:8080` stands there as `0100007F:1F90`: the address as a number of this machine, little-endian. */
function inTable({ address, port }: Endpoint): string {
  const octets = address.split('.').map((octet) => hex(Number(octet), 2));
  return `${octets.toReversed().join('')}:${hex(port, 4)}`;
}

function hex(value: number, digits: number): string {
  return value.toString(16).toUpperCase().padStart(digits, '0');
}
