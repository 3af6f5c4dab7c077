import { RetryableError } from '../../base/errors.ts';
import { limit } from '../../base/limit.ts';
import { formatMark, type Identity, readMark } from '../../base/ownership.ts';
import type { ContainerSpec } from '../../manifest/containers.ts';
import type { Resource } from '../contract.ts';
import { containerName, isOfSamePlace } from './desired.ts';
import { Failures } from './failures.ts';
import { type HealthOutcome, staysHealthy, waitForHealth } from './health.ts';
import { boundEndpoint, type ContainerInstance, type Launch, type Runtime } from './runtime.ts';

export interface BringUpDeps {
  readonly runtime: Runtime;
  readonly identity: Identity;
  /** How long a new one may take until it is healthy. */
  readonly startupDeadlineMs: number;
  /** How long one that takes another's place must be healthy before it does. */
  readonly steadyMs: number;
  /** How many may be starting at once: the others' deadlines don't run while they wait. */
  readonly startsAtOnce: number;
  /** A spec that never was healthy is left alone after so many failures. */
  readonly giveUpAfter: number;
  /** Asks for another edition of a site's containers. */
  readonly renew: (site: string) => void;
  /** Takes away what stands in the place of a container and leads to it. */
  readonly leave: (name: string) => Promise<void>;
}

/** One that runs already and doesn't answer gets this long to think again before it is replaced. */
const SECOND_CHANCE_MS = 5_000;

/**
 * Brings a container up and answers when it is healthy: one that stands already and is right is kept; one that serves
 * and asks to be replaced is, by a new edition beside it; any other is replaced where it stands. A new one that fails
 * is removed, and the error says why; aborted in between, it stays for the next pass to judge.
 */
export function buildBringUp(deps: BringUpDeps) {
  const { runtime, identity, startupDeadlineMs, steadyMs, renew, leave } = deps;
  const failures = new Failures(deps.giveUpAfter);
  const starting = limit(deps.startsAtOnce);

  return async function bringUp(resource: Resource<ContainerSpec>, signal: AbortSignal): Promise<void> {
    const { spec, site, hash } = resource;
    const name = containerName(identity.instance, spec);
    const mark = formatMark(identity, site, hash);
    const instances = await runtime.list(new Set([name]), signal);
    const standing = instances.find((instance) => instance.name === name);
    const others = instances.filter((other) => other.id !== standing?.id && isOurs(other));
    const isSwap = others.some(
      (other) => other.running && isOfSamePlace(identity.instance, other.name, spec),
    );
    if (standing !== undefined) {
      refuseForeign(standing, resource);
      if (standing.mark === mark) {
        const health = await judge(standing, spec, signal);
        if (health === 'healthy') return;
        if (health === 'unwell' && !spec.onDemand) return renew(site);
        // Only what was healthy once is kept, unless it was left half-way, beside the one that it was to replace.
        if (!isSwap) failures.prove(hash);
      }
      // The very same comes back: whoever waits for it at its door goes on waiting.
      else await leave(name);
      await runtime.remove(standing.id, signal);
    }
    const rival = others.find(({ endpoint }) => isAt(endpoint, spec));
    if (rival !== undefined) {
      await leave(rival.name);
      await runtime.remove(rival.id, signal);
    }
    await launch({ name, mark, spec }, hash, isSwap, signal);
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

  /** One that rests until it is wanted counts as healthy: it was, or it would not have been put to rest. */
  async function judge(
    { id, running, stopped }: ContainerInstance,
    spec: ContainerSpec,
    signal: AbortSignal,
  ) {
    if (!running) return spec.onDemand && stopped ? 'healthy' : 'silent';
    const lost = () => runtime.death(id, signal);
    const outcome = await waitForHealth(boundEndpoint(spec), { deadlineMs: SECOND_CHANCE_MS, lost }, signal);
    return typeof outcome === 'string' ? outcome : 'silent';
  }

  async function launch(wanted: Launch, hash: string, isSwap: boolean, signal: AbortSignal): Promise<void> {
    const { name, spec } = wanted;
    const endpoint = boundEndpoint(spec);
    const { id, outcome, ms } = await starting(async () => {
      const id = await runtime.start(wanted, signal);
      const begun = performance.now();
      const lost = () => runtime.death(id, signal);
      const outcome = await waitForHealth(endpoint, { deadlineMs: startupDeadlineMs, lost }, signal);
      return { id, outcome, ms: Math.round(performance.now() - begun) };
    });
    const lost = () => runtime.death(id, signal);
    const well = outcome === 'healthy';
    const end = well && isSwap ? await staysHealthy(endpoint, { forMs: steadyMs, lost }, signal) : outcome;
    if (end === 'healthy') return failures.prove(hash);
    const lines = await runtime.lastLines(id, signal);
    await leave(name);
    await runtime.remove(id, signal);
    const what = well
      ? `healthy after ${ms} ms, ${describe(end)} soon after`
      : describe(end, startupDeadlineMs);
    throw failures.count(hash, { name, spec, what, lines });
  }
}

function describe(end: HealthOutcome, afterMs?: number): string {
  if (typeof end !== 'string') return `it died (${end.death})`;
  const how = end === 'unwell' ? 'it answered that it is not healthy' : 'it was not healthy';
  return afterMs === undefined ? how : `${how} after ${afterMs} ms`;
}

/** Two specs of one site and role can fall on one slot (1 in 65,024); then it is one after the other. */
function isAt(endpoint: ContainerInstance['endpoint'], spec: ContainerSpec): boolean {
  return endpoint?.address === spec.boundAddress && endpoint.port === spec.port;
}
