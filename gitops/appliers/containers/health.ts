import { get } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { limit } from '../../base/limit.ts';
import type { Endpoint } from './runtime.ts';

/** A healthy server answers at once; one that takes longer than this serves nobody. */
const PROBE_MS = 2_000;
const INTERVAL_MS = 100;
/** Of all that are being waited for one is asked in so long, until one is healthy: then the next one is at once. */
const TURN_MS = 50;
/** Whether it still runs is a question to the engine, and a dear one where many are starting: asked ever less often. */
const LOST_INTERVAL_MS = 1_000;
const LONGEST_LOST_INTERVAL_MS = 4_000;

/** `unwell`: it answers, and asks to be replaced; it may well go on serving until then. */
export type ContainerHealth = 'healthy' | 'unwell' | 'silent';

/** Asks from outside, because there is no shell in the image. Only the status counts (facts.md, Health). */
export async function healthOf({ address, port }: Endpoint, signal: AbortSignal): Promise<ContainerHealth> {
  const { promise, resolve } = Promise.withResolvers<ContainerHealth>();
  // No agent: a kept connection would tell of the container before this one.
  const asked = get({ host: address, port, path: '/healthz', agent: false, signal });
  const tooSlow = setTimeout(() => asked.destroy(), PROBE_MS);
  asked.once('response', (response) => {
    response.resume();
    resolve(response.statusCode === 200 ? 'healthy' : 'unwell');
  });
  // Refused, reset or too slow: that is the answer to the question.
  asked.on('error', () => resolve('silent'));
  asked.once('close', () => {
    clearTimeout(tooSlow);
    // No answer and no error either: it wants to speak something else than HTTP (101), which isn't taken up.
    resolve('silent');
  });
  const health = await promise;
  signal.throwIfAborted();
  return health;
}

/** A reason that it isn't running any more, see `Runtime.death`; else the last answer by the deadline. */
export type HealthOutcome = { readonly death: string } | ContainerHealth;

/** Polls until it is healthy, at most until the deadline, or until `lost` has a reason. */
export async function waitForHealth(
  endpoint: Endpoint,
  { deadlineMs, lost }: { deadlineMs: number; lost: () => Promise<string | null> },
  signal: AbortSignal,
): Promise<HealthOutcome> {
  const startedAt = performance.now();
  let lostInterval = LOST_INTERVAL_MS;
  for (let askAt = startedAt + lostInterval; ; ) {
    const health = await healthInTurn(endpoint, signal);
    if (health === 'healthy') return health;
    const over = performance.now() >= startedAt + deadlineMs;
    if (over || performance.now() >= askAt) {
      const death = await lost();
      if (death !== null) return { death };
      askAt = performance.now() + lostInterval;
      lostInterval = Math.min(LONGEST_LOST_INTERVAL_MS, lostInterval * 2);
    }
    if (over) return health;
    await wait(INTERVAL_MS, undefined, { signal });
  }
}

const turns = limit(1);

/**
 * One after another: many that start at once must not spend the host's time on being asked. Who is slow to answer holds
 * the others up for no longer than a turn.
 */
async function healthInTurn(endpoint: Endpoint, signal: AbortSignal): Promise<ContainerHealth> {
  const { health } = await turns(async () => {
    const over = wait(TURN_MS);
    const health = healthOf(endpoint, signal);
    if ((await Promise.race([health, over])) !== 'healthy') await over;
    // In an object, since an async function would wait for a promise.
    return { health };
  });
  return await health;
}

/** Polls for so long; ends early with the first answer that isn't `healthy`. */
export async function staysHealthy(
  endpoint: Endpoint,
  { forMs, lost }: { forMs: number; lost: () => Promise<string | null> },
  signal: AbortSignal,
): Promise<HealthOutcome> {
  const deadline = performance.now() + forMs;
  while (performance.now() < deadline) {
    await wait(Math.min(INTERVAL_MS, forMs), undefined, { signal });
    const health = await healthOf(endpoint, signal);
    if (health === 'healthy') continue;
    const death = await lost();
    return death === null ? health : { death };
  }
  return 'healthy';
}
