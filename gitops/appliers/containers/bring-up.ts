import type { ContainerSpec } from '../../manifest/containers.ts';
import { formatMark, type Identity, readMark } from '../../ownership.ts';
import { type Resource, RetryableError, TerminalError } from '../contract.ts';
import { containerName } from './desired.ts';
import { waitForHealth } from './health.ts';
import { redact } from './redact.ts';
import type { Instance, Launch, Runtime } from './runtime.ts';

export interface BringUpDeps {
  readonly runtime: Runtime;
  readonly identity: Identity;
  /** How long a new one may take until it is healthy. */
  readonly startupDeadlineMs: number;
}

/** One that runs already and doesn't answer gets this long to think again before it is replaced. */
const SECOND_CHANCE_MS = 5_000;
/** A spec that has died this often while starting is taken to be wrong itself. */
const DEATHS_UNTIL_TERMINAL = 3;
const SHOWN_LINES = 5;
const LONGEST_LINE = 300;

/**
 * Brings a container up and answers when it is healthy: one that stands already and is right is kept, one that isn't
 * is replaced. A new one that fails is removed, and the error says why; aborted in between, it stays for the next
 * pass to judge.
 */
export function buildBringUp({ runtime, identity, startupDeadlineMs }: BringUpDeps) {
  /** Deaths while starting, by the resource's hash. */
  const deaths = new Map<string, number>();

  return async function bringUp(resource: Resource<ContainerSpec>, signal: AbortSignal): Promise<void> {
    const { spec, site, hash } = resource;
    const name = containerName(identity.instance, spec);
    const mark = formatMark(identity, site, hash);
    const instances = await runtime.list(new Set([name]), signal);
    const standing = instances.find((instance) => instance.name === name);
    if (standing !== undefined) {
      const { owner } = readMark(identity, standing.mark);
      if (owner.kind === 'foreign' && !resource.adopt) {
        throw new RetryableError(`${name} was taken by ${owner.by} since it was observed`);
      }
      if (standing.mark === mark && (await recovers(standing, spec, signal))) return;
      await runtime.remove(standing.id, signal);
    }
    const rival = instances.find((other) => other.id !== standing?.id && holdsSlotOf(spec, other));
    if (rival !== undefined) await runtime.remove(rival.id, signal);
    await launch({ name, mark, spec }, hash, signal);
  };

  /** Two specs of one site and role can fall on one slot (1 in 65,024); then it is one after the other. */
  function holdsSlotOf(spec: ContainerSpec, { endpoint, mark }: Instance): boolean {
    const same = endpoint?.address === spec.address && endpoint.port === spec.port;
    return same && readMark(identity, mark).owner.kind === 'ours';
  }

  async function recovers({ id, running }: Instance, spec: ContainerSpec, signal: AbortSignal) {
    if (!running) return false;
    const lost = () => runtime.death(id, signal);
    return (await waitForHealth(spec, { deadlineMs: SECOND_CHANCE_MS, lost }, signal)) === true;
  }

  async function launch(wanted: Launch, hash: string, signal: AbortSignal): Promise<void> {
    const { name, spec } = wanted;
    const id = await runtime.start(wanted, signal);
    const lost = () => runtime.death(id, signal);
    const outcome = await waitForHealth(spec, { deadlineMs: startupDeadlineMs, lost }, signal);
    if (outcome === true) {
      deaths.delete(hash);
      return;
    }
    const lines = await runtime.lastLines(id, signal);
    await runtime.remove(id, signal);
    const wrote = quote(spec, lines);
    if (outcome === false) {
      throw new RetryableError(`${name} was not healthy after ${startupDeadlineMs} ms; ${wrote}`);
    }
    const times = (deaths.get(hash) ?? 0) + 1;
    deaths.set(hash, times);
    const message = `${name} died while starting (${outcome}); ${wrote}`;
    if (times >= DEATHS_UNTIL_TERMINAL) throw new TerminalError(`${message}; ${times} times in a row`);
    throw new RetryableError(message);
  }
}

function quote({ config }: ContainerSpec, lines: readonly string[]): string {
  const shown = lines.slice(-SHOWN_LINES).map((line) => redact(config, line).slice(0, LONGEST_LINE));
  return shown.length === 0 ? 'it wrote nothing' : `it wrote: ${shown.join(' | ')}`;
}
