import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import { formatMark, type Identity, readMark } from '../../../base/ownership.ts';
import type { ContainerSpec } from '../../../sites/manifest/containers.ts';
import type { Resource } from '../contract.ts';
import { containerName, isOfSamePlace } from './desired.ts';
import type { Failures } from './failures.ts';
import { type HealthOutcome, staysHealthy, waitForHealth } from './health.ts';
import { boundEndpoint, type ContainerInstance, type Launch, type Runtime } from './runtime.ts';

interface BringUpDeps {
  readonly runtime: Runtime;
  readonly identity: Identity;
  /** Milliseconds until a new container must be healthy. */
  readonly startupDeadlineMs: number;
  /** Milliseconds that a replacement must stay healthy before it takes over. */
  readonly steadyMs: number;
  /** Maximum number of concurrent starts. The startup deadline of a queued start doesn't run yet. */
  readonly startsAtOnce: number;
  readonly failures: Failures;
  /** Makes a new edition of a site's containers due. */
  readonly renew: (site: string) => void;
  /** Closes the port gate of a container, if it has one. */
  readonly closeGate: (name: string) => Promise<void>;
  readonly clock?: Clock;
}

/** `kept`: the existing container stays. `unhealthy`: so does one that answers with an error. `started`: a new one runs. */
type BroughtUp = 'kept' | 'unhealthy' | 'started';

/** Milliseconds within which a running container must answer; otherwise it is replaced. */
const SECOND_CHANCE_MS = 5_000;

/**
 * Returns a function that makes sure that a container runs and is healthy. A healthy container that has the desired
 * spec is kept. One with that spec that answers but reports itself unhealthy is kept, too, and the function makes a new
 * edition due; but if it is on demand, it is replaced now. An existing container in any other state is removed, and
 * a new one is started. If the new one fails, it is removed, and the error gives the cause. After an abort, it stays
 * for the next pass.
 */
export function buildBringUp(deps: BringUpDeps) {
  const { runtime, identity, startupDeadlineMs, steadyMs, failures, renew, closeGate } = deps;
  const { clock = systemClock } = deps;
  const starts = limit(deps.startsAtOnce);

  return async function bringUp(resource: Resource<ContainerSpec>, signal: AbortSignal): Promise<BroughtUp> {
    const { spec, site, hash } = resource;
    const name = containerName(identity.instance, spec);
    const mark = formatMark(identity, site, hash);
    const instances = await runtime.list(new Set([name]), signal);
    const existing = instances.find((instance) => instance.name === name);
    const others = instances.filter((other) => other.id !== existing?.id && isOurs(other));
    const isReplacement = others.some(
      (other) => other.running && isOfSamePlace(identity.instance, other.name, spec),
    );
    if (existing !== undefined) {
      refuseForeign(existing, resource);
      if (existing.mark === mark && existing.inPlace && !existing.isReaddressed) {
        const health = await checkExisting(existing, spec, signal);
        if (health === 'healthy') {
          failures.prove(hash);
          return 'kept';
        }
        if (health === 'unhealthy' && !spec.onDemand) {
          renew(site);
          return 'unhealthy';
        }
        // No `prove` here: that it exists doesn't show that it was ever healthy; its start may have been interrupted.
        // Its gate stays open: the new container serves the waiting clients.
      } else await closeGate(name);
      await runtime.remove(existing.id, signal);
    }
    await launch({ name, mark, spec }, { hash, isReplacement }, signal);
    return 'started';
  };

  function isOurs({ mark }: ContainerInstance): boolean {
    return readMark(identity, mark).owner.kind === 'ours';
  }

  function refuseForeign({ name, mark }: ContainerInstance, { adopt }: Resource): void {
    const { owner } = readMark(identity, mark);
    if (owner.kind === 'foreign' && !adopt) {
      throw new RetryableError(`${name} was taken by ${owner.by} since it was observed`);
    }
  }

  /** A stopped on-demand container counts as healthy, because it was healthy when it was stopped. */
  async function checkExisting(
    { id, running, stopped }: ContainerInstance,
    spec: ContainerSpec,
    signal: AbortSignal,
  ) {
    if (!running) return spec.onDemand && stopped ? 'healthy' : 'unreachable';
    const death = () => runtime.death(id, signal);
    const options = { deadlineMs: SECOND_CHANCE_MS, death, clock };
    const outcome = await waitForHealth(boundEndpoint(spec), options, signal);
    return typeof outcome === 'string' ? outcome : 'unreachable';
  }

  async function launch(
    wanted: Launch,
    { hash, isReplacement }: { hash: string; isReplacement: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    const { name, spec } = wanted;
    const endpoint = boundEndpoint(spec);
    const { id, started, ms } = await starts(async () => {
      const id = await runtime.start(wanted, signal);
      const startedAt = clock.now();
      const death = () => runtime.death(id, signal);
      const started = await waitForHealth(endpoint, { deadlineMs: startupDeadlineMs, death, clock }, signal);
      return { id, started, ms: Math.round(clock.now() - startedAt) };
    });
    const death = () => runtime.death(id, signal);
    const isHealthy = started === 'healthy';
    if (isHealthy) failures.started(name);
    const outcome =
      isHealthy && isReplacement
        ? await staysHealthy(endpoint, { forMs: steadyMs, death, clock }, signal)
        : started;
    if (outcome === 'healthy') return failures.prove(hash);
    const lines = await runtime.lastLines(id, signal);
    await closeGate(name);
    await runtime.remove(id, signal);
    const what = isHealthy
      ? `healthy after ${ms} ms, ${describe(outcome)} soon after`
      : describe(outcome, startupDeadlineMs);
    throw failures.count(hash, { name, spec, what, lines });
  }
}

function describe(outcome: HealthOutcome, afterMs?: number): string {
  if (typeof outcome !== 'string') return `it died (${outcome.death})`;
  const what = outcome === 'unhealthy' ? 'it reported itself unhealthy' : 'it was not healthy';
  return afterMs === undefined ? what : `${what} after ${afterMs} ms`;
}
