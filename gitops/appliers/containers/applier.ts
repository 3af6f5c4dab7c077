import { EventEmitter, on } from 'node:events';
import { TerminalError } from '../../base/errors.ts';
import { type Identity, readMark } from '../../base/ownership.ts';
import type { ContainerSpec } from '../../manifest/containers.ts';
import type { Applier, Change, Observed } from '../contract.ts';
import { planResources } from '../plan.ts';
import { buildBringUp } from './bring-up.ts';
import { CONTAINERS, containerName, desiredContainers, keyOfName } from './desired.ts';
import { healthOf } from './health.ts';
import { OnDemand } from './on-demand.ts';
import type { Recycling } from './recycling.ts';
import type { ContainerInstance, Endpoint, Runtime } from './runtime.ts';
import { type Drain, drained, released } from './sockets.ts';

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
  /** How long one that takes another's place must be healthy before it does; a first start needn't. */
  readonly steadyMs: number;
  /** How traffic runs dry before one is removed. */
  readonly drain: Drain;
  /** How long a preview server that is started on demand stays up when nobody uses it. */
  readonly previewIdleMs: number;
  readonly recycling: Recycling;
  /** How many may be starting at once, the others' deadlines don't run meanwhile; default 64. */
  readonly startsAtOnce?: number;
  /** A spec that never was healthy is left alone after so many failures; default 12, in half an hour at most. */
  readonly giveUpAfter?: number;
}

export interface ContainerRef {
  readonly id: string;
  readonly name: string;
  /** `null` where it wasn't running. */
  readonly endpoint: Endpoint | null;
}

export interface ContainersApplier extends Applier<ContainerSpec, ContainerRef> {
  /** Some are being brought up right now. */
  isBringingUp(): boolean;
}

/** Health is asked of so many at a time. */
const PROBES_AT_ONCE = 64;

/** Applies a site's containers through a runtime: a new one beside the old, and healthy before anything else happens. */
export function containersApplier(settings: ContainersSettings, runtime: Runtime): ContainersApplier {
  const { identity, recycling, startupDeadlineMs } = settings;
  const { instance } = identity;
  const wishes = { ...settings, edition: (site: string) => recycling.edition(site) };
  const news = new EventEmitter();
  const bringUp = buildBringUp({
    startsAtOnce: 64,
    giveUpAfter: 12,
    ...settings,
    runtime,
    renew(site) {
      recycling.renew(site);
      news.emit('news');
    },
    leave: (name) => onDemand.leave(name),
  });
  /** Names under change right now: what dies of them is our own doing. */
  const busy = new Set<string>();
  let comingUp = 0;
  const whileBusy = async (name: string, work: () => Promise<void>) => {
    busy.add(name);
    try {
      await work();
    } finally {
      busy.delete(name);
    }
  };
  const onDemand = new OnDemand({ runtime, startupDeadlineMs, idleMs: settings.previewIdleMs, whileBusy });

  async function observeOne(found: ContainerInstance, needsDoor: boolean, signal: AbortSignal) {
    const { id, name, mark, running, endpoint } = found;
    const { owner, hash } = readMark(identity, mark);
    const serves = async () => {
      if (owner.kind !== 'ours' || (needsDoor && !onDemand.isTended(name))) return false;
      if (needsDoor && onDemand.isResting(found)) return true;
      return running && endpoint !== null && (await healthOf(endpoint, signal)) === 'healthy';
    };
    // A renamed one of ours stands under no wanted key, and so goes.
    const key = keyOfName(instance, name) ?? `stray/${name}`;
    const ref = { id, name, endpoint: running ? endpoint : null };
    return { target: CONTAINERS.target, key, hash: (await serves()) ? hash : null, owner, ref } as const;
  }

  async function remove({ id, name, endpoint }: ContainerRef, signal: AbortSignal): Promise<void> {
    const found = await runtime.list(new Set([name]), signal);
    if (!found.some((one) => one.name === name)) await onDemand.leave(name);
    // Gone already, and in its slot may be another one by now.
    if (!found.some((one) => one.id === id)) return;
    if (endpoint !== null) await drained(endpoint, settings.drain, signal);
    await onDemand.leave(name);
    await runtime.remove(id, signal);
    // Its port may be given to another site from now on.
    if (endpoint !== null) await released(endpoint, signal);
  }

  return {
    ...CONTAINERS,
    desired: (manifest) => desiredContainers(manifest, wishes),
    edition: ({ site }) => recycling.edition(site),
    plan: planResources,

    async observe(desired, signal, scope) {
      const specs = new Map(desired.map(({ spec }) => [containerName(instance, spec), spec]));
      const all = await runtime.list(new Set(specs.keys()), signal);
      await onDemand.keepOnly(new Set([...specs.keys(), ...all.map(({ name }) => name)]), scope?.sites);
      const found = all.filter(({ name, mark }) => {
        const { owner } = readMark(identity, mark);
        return specs.has(name) || (owner.kind === 'ours' && (scope?.sites.has(owner.site) ?? true));
      });
      const observed: Observed<ContainerRef>[] = [];
      for (let at = 0; at < found.length; at += PROBES_AT_ONCE) {
        const some = found.slice(at, at + PROBES_AT_ONCE);
        const looks = some.map((one) => observeOne(one, specs.get(one.name)?.onDemand ?? false, signal));
        observed.push(...(await Promise.all(looks)));
      }
      return observed;
    },

    async apply({ key, op, desired, observed }: Change<ContainerSpec, ContainerRef>, signal) {
      const name = desired === undefined ? observed?.ref.name : containerName(instance, desired.spec);
      if (name === undefined) throw new TerminalError(`${key} names nothing to ${op}`);
      await whileBusy(name, async () => {
        if (desired !== undefined) {
          comingUp += 1;
          await bringUp(desired, signal).finally(() => {
            comingUp -= 1;
          });
          if (desired.spec.onDemand) await onDemand.tend(name, desired.spec);
        } else if (observed !== undefined) await remove(observed.ref, signal);
      });
    },

    isBringingUp: () => comingUp > 0,

    async *events(signal) {
      const follow = async () => {
        for await (const name of runtime.losses(signal)) if (!busy.has(name)) news.emit('news');
      };
      void follow();
      try {
        for await (const _ of on(news, 'news', { signal })) yield;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },

    async close() {
      await onDemand.close();
      await runtime.close();
    },
  };
}
