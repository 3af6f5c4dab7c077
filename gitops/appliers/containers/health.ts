import { get } from 'node:http';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { limit } from '../../../base/limit.ts';
import type { Endpoint } from './runtime.ts';

/** A healthy server answers at once. */
const PROBE_TIMEOUT_MS = 2_000;
const INTERVAL_MS = 100;
/** The time from one probe of starting containers to the next. A result of `healthy` ends it early. */
const PROBE_SLOT_MS = 50;
/** The engine is asked ever less often whether a container still runs: the question is expensive while many start. */
const DEATH_INTERVAL_MS = 1_000;
const LONGEST_DEATH_INTERVAL_MS = 4_000;

/** `unhealthy`: it answers with a status other than 200, and may still serve. `unreachable`: it doesn't answer. */
type ContainerHealth = 'healthy' | 'unhealthy' | 'unreachable';

/** Probes from outside, because the image has no shell. Only the status counts (docs/facts.md, Health). */
export async function healthOf({ address, port }: Endpoint, signal: AbortSignal): Promise<ContainerHealth> {
  const { promise, resolve } = Promise.withResolvers<ContainerHealth>();
  // No agent: a kept connection would belong to the previous container.
  const probe = get({ host: address, port, path: '/healthz', agent: false, signal });
  const timeout = setTimeout(() => probe.destroy(), PROBE_TIMEOUT_MS);
  probe.once('response', (response) => {
    response.resume();
    resolve(response.statusCode === 200 ? 'healthy' : 'unhealthy');
  });
  // Refused, reset or too slow.
  probe.on('error', () => resolve('unreachable'));
  probe.once('close', () => {
    clearTimeout(timeout);
    // A switch of protocols (101) closes the probe without a response and without an error.
    resolve('unreachable');
  });
  const health = await promise;
  signal.throwIfAborted();
  return health;
}

/** The health of a container that may serve: a single answer that is late, on a busy host, is no fault. */
export async function confirmedHealth(endpoint: Endpoint, signal: AbortSignal): Promise<ContainerHealth> {
  const health = await healthOf(endpoint, signal);
  return health === 'unreachable' ? await healthOf(endpoint, signal) : health;
}

/** Why the container doesn't run any more (see `Runtime.death`), or the result of the last probe. */
export type HealthOutcome = { readonly death: string } | ContainerHealth;

interface WaitOptions {
  readonly deadlineMs: number;
  /** See `Runtime.death`. */
  readonly death: () => Promise<string | null>;
  readonly clock?: Clock;
}

/** Probes until the container is healthy, the deadline is over, or the container is dead. */
export async function waitForHealth(
  endpoint: Endpoint,
  { deadlineMs, death, clock = systemClock }: WaitOptions,
  signal: AbortSignal,
): Promise<HealthOutcome> {
  const startedAt = clock.now();
  let interval = DEATH_INTERVAL_MS;
  for (let askAt = startedAt + interval; ; ) {
    const health = await probeInSlot(endpoint, clock, signal);
    if (health === 'healthy') return health;
    const isOver = clock.now() >= startedAt + deadlineMs;
    if (isOver || clock.now() >= askAt) {
      const reason = await death();
      if (reason !== null) return { death: reason };
      askAt = clock.now() + interval;
      interval = Math.min(LONGEST_DEATH_INTERVAL_MS, interval * 2);
    }
    if (isOver) return health;
    await clock.sleep(INTERVAL_MS, { signal });
    signal.throwIfAborted();
  }
}

const slots = limit(1);

/**
 * Limits the rate of probes of starting containers, so that many simultaneous starts don't use up the host's CPU time.
 * A slow answer delays the next probe by one slot only.
 */
async function probeInSlot(endpoint: Endpoint, clock: Clock, signal: AbortSignal): Promise<ContainerHealth> {
  const { health } = await slots(async () => {
    const slot = clock.sleep(PROBE_SLOT_MS);
    const health = healthOf(endpoint, signal);
    if ((await Promise.race([health, slot])) !== 'healthy') await slot;
    // Returned in an object, because an async function waits for a promise that it returns.
    return { health };
  });
  return await health;
}

interface SteadyOptions {
  readonly forMs: number;
  /** See `Runtime.death`. */
  readonly death: () => Promise<string | null>;
  readonly clock?: Clock;
}

/** Probes for `forMs`. Returns early with the first result that isn't `healthy`. */
export async function staysHealthy(
  endpoint: Endpoint,
  { forMs, death, clock = systemClock }: SteadyOptions,
  signal: AbortSignal,
): Promise<HealthOutcome> {
  const deadline = clock.now() + forMs;
  while (clock.now() < deadline) {
    await clock.sleep(Math.min(INTERVAL_MS, forMs), { signal });
    signal.throwIfAborted();
    const health = await healthOf(endpoint, signal);
    if (health === 'healthy') continue;
    const reason = await death();
    return reason === null ? health : { death: reason };
  }
  return 'healthy';
}
