import type { ContainerSpec } from '../../manifest/containers.ts';
import { type Identity, readMark } from '../../ownership.ts';
import { planResources } from '../../plan.ts';
import { type Applier, type Change, type Observed, TerminalError } from '../contract.ts';
import { buildBringUp } from './bring-up.ts';
import { containerName, desiredContainers, keyOfName } from './desired.ts';
import { isHealthy } from './health.ts';
import type { Instance, Runtime } from './runtime.ts';

export interface ContainersSettings {
  readonly identity: Identity;
  /** First two octets of the loopback range that containers are bound in, `127.77` say. */
  readonly loopbackSubnet: string;
  /** The port on which the proxy answers TLS for preview hostnames. */
  readonly originPort: number;
  /** PEM file of a CA that containers trust beside Node's own; the runtime is given the same one. */
  readonly caFile?: string;
  /** How long a new one may take until it is healthy. */
  readonly startupDeadlineMs: number;
}

export interface ContainerRef {
  readonly id: string;
  readonly name: string;
}

/** Health is asked of so many at a time. */
const PROBES_AT_ONCE = 64;

/** Applies a site's containers through a runtime: a new one beside the old, and healthy before anything else happens. */
export function containersApplier(
  settings: ContainersSettings,
  runtime: Runtime,
): Applier<ContainerSpec, ContainerRef> {
  const { identity, startupDeadlineMs } = settings;
  const { instance } = identity;
  const bringUp = buildBringUp({ runtime, identity, startupDeadlineMs });
  /** Names under change right now: what dies of them is our own doing. */
  const busy = new Set<string>();

  async function observeOne(found: Instance, signal: AbortSignal): Promise<Observed<ContainerRef>> {
    const { id, name, mark, running, endpoint } = found;
    const { owner, hash } = readMark(identity, mark);
    const asks = owner.kind === 'ours' && running && endpoint !== null;
    const serves = asks && (await isHealthy(endpoint, signal));
    // A renamed one of ours stands under no wanted key, and so goes.
    const key = keyOfName(instance, name) ?? `stray/${name}`;
    return { target: 'containers', key, hash: serves ? hash : null, owner, ref: { id, name } };
  }

  return {
    target: 'containers',
    desired: (manifest) => desiredContainers(manifest, settings),
    plan: planResources,

    async observe(desired, signal) {
      const names = new Set(desired.map(({ spec }) => containerName(instance, spec)));
      const found = (await runtime.list(names, signal)).filter(
        ({ name, mark }) => names.has(name) || readMark(identity, mark).owner.kind === 'ours',
      );
      const observed: Observed<ContainerRef>[] = [];
      for (let at = 0; at < found.length; at += PROBES_AT_ONCE) {
        const some = found.slice(at, at + PROBES_AT_ONCE);
        observed.push(...(await Promise.all(some.map((each) => observeOne(each, signal)))));
      }
      return observed;
    },

    async apply({ key, op, desired, observed }: Change<ContainerSpec, ContainerRef>, signal) {
      const name = desired === undefined ? observed?.ref.name : containerName(instance, desired.spec);
      if (name === undefined) throw new TerminalError(`${key} names nothing to ${op}`);
      busy.add(name);
      try {
        if (desired !== undefined) await bringUp(desired, signal);
        else if (observed !== undefined) await runtime.remove(observed.ref.id, signal);
      } finally {
        busy.delete(name);
      }
    },

    async *events(signal) {
      for await (const name of runtime.losses(signal)) {
        if (!busy.has(name)) yield;
      }
    },

    close: () => runtime.close(),
  };
}
