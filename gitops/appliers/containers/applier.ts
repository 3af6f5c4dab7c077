import { EventEmitter, on } from 'node:events';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import type { Log } from '../../../base/log.ts';
import { type Identity, readMark } from '../../../base/ownership.ts';
import {
  type ContainerSpec,
  containerKey,
  gateHolder,
  type LoadedManifest,
} from '../../../sites/manifest/containers.ts';
import type { Slots } from '../../../sites/manifest/slots.ts';
import type { Applier, Change, Observed, Resource, Scope } from '../contract.ts';
import { planResources } from '../plan.ts';
import { buildBringUp } from './bring-up.ts';
import { CONTAINERS, containerName, describeContainer, desiredContainers, keyOfName } from './desired.ts';
import { Failures } from './failures.ts';
import { confirmedHealth } from './health.ts';
import { HealthWatch } from './health-watch.ts';
import type { ImagePruning } from './image-pruning.ts';
import { OnDemand } from './on-demand.ts';
import type { OutputSink } from './output/output.ts';
import type { Recycling } from './recycling.ts';
import { boundEndpoint, type ContainerInstance, type Endpoint, type Runtime } from './runtime.ts';
import { readSlots } from './slots.ts';
import { type Drain, drained, released } from './sockets.ts';

export interface ContainersSettings {
  readonly identity: Identity;
  readonly slots: Slots;
  /** Each site's containers are in a network of their own. */
  readonly ownNetwork?: boolean;
  /** See `ContainerSettings`. */
  readonly previewNameOf?: (site: string) => string;
  /** The proxy's TLS port for preview hostnames. */
  readonly originPort: number;
  /** PEM file of a CA that containers trust in addition to Node's own CAs. The runtime gets the same file. */
  readonly caFile?: string;
  readonly caHash?: string;
  /** Milliseconds until a new container must be healthy. */
  readonly startupDeadlineMs: number;
  /** Milliseconds that a replacement must stay healthy before it takes over. A first start takes over immediately. */
  readonly steadyMs: number;
  /** How long to wait for open connections to end before a container is removed. */
  readonly drain: Drain;
  /** An on-demand preview server is stopped after this many milliseconds without a client. */
  readonly previewIdleMs: number;
  readonly recycling: Recycling;
  /** The most concurrent starts of containers; default 64. Time in the queue doesn't count towards the deadline. */
  readonly startsAtOnce?: number;
  /** Gets the images of all sites at each full observation. Default: images are never removed. */
  readonly images?: Pick<ImagePruning, 'start' | 'ended'>;
  /** Keeps what containers print. Default: nothing is kept. */
  readonly output?: Pick<OutputSink, 'forget'>;
  /** After this many failures due to the site, a spec never seen healthy is given up; default 12 (takes ≤ 30 min). */
  readonly giveUpAfter?: number;
  /** Gets the beginning and the end of each outage of a container. */
  readonly log?: Pick<Log, 'info' | 'warn'>;
  /** Of the probes of running containers; default: the system's. */
  readonly clock?: Clock;
}

interface ContainerRef {
  readonly id: string;
  readonly name: string;
  /** `null` if the container wasn't running. */
  readonly endpoint: Endpoint | null;
}

interface ContainersApplier extends Applier<ContainerSpec, ContainerRef> {
  /** At least one container is starting. */
  isBringingUp(): boolean;
  /** Reads the slots of the containers that exist, so that the first plan has them. */
  readSlots(signal: AbortSignal): Promise<void>;
}

const GIVE_UP_AFTER = 12;
/** At most this many health probes run in parallel. */
const PROBES_AT_ONCE = 64;

/** Applies a site's containers through a runtime. A new container starts beside the old one and must become healthy. */
export function containersApplier(settings: ContainersSettings, runtime: Runtime): ContainersApplier {
  const { identity, recycling, slots, startupDeadlineMs } = settings;
  const { instance } = identity;
  const desiredSettings = { ...settings, edition: (site: string) => recycling.edition(site) };
  const changes = new EventEmitter();
  const probes = limit(PROBES_AT_ONCE);
  const failures = new Failures(settings.giveUpAfter ?? GIVE_UP_AFTER, systemClock);
  const bringUp = buildBringUp({
    startsAtOnce: 64,
    ...settings,
    runtime,
    failures,
    renew(site) {
      recycling.renew(site);
      changes.emit('change');
    },
    closeGate: (name) => onDemand.closeGate(name),
  });
  /** Containers that the applier is changing. It stops them itself, so their losses aren't reported. */
  const busy = new Set<string>();
  let starting = 0;
  const whileBusy = async (name: string, work: () => Promise<void>) => {
    busy.add(name);
    try {
      await work();
    } finally {
      busy.delete(name);
    }
  };
  const onDemand = new OnDemand({
    runtime,
    startupDeadlineMs,
    idleMs: settings.previewIdleMs,
    whileBusy,
    onMissing: () => void changes.emit('change'),
  });
  const watch = new HealthWatch({
    isOnStandby: (name) => onDemand.hasGate(name) && !onDemand.isServing(name),
    onOutage: (site) => changes.emit('change', site),
    log: settings.log ?? { info: () => undefined, warn: () => undefined },
    ...(settings.clock === undefined ? {} : { clock: settings.clock }),
  });
  const sawHealthy = (name: string, site: string, endpoint: Endpoint) =>
    watch.sawHealthy(name, { site, what: describeContainer(instance, name), endpoint });

  async function list(names: ReadonlySet<string>, signal: AbortSignal) {
    const all = await runtime.list(names, signal);
    return { all, holders: readSlots(slots, identity, all) };
  }

  /** Releases each slot whose container doesn't exist, isn't desired and isn't being changed. */
  function releaseSlots(holders: Set<string>, desired: readonly Resource<ContainerSpec>[]): void {
    const changing = [...busy].flatMap((name) => keyOfName(instance, name) ?? []);
    for (const holder of [...changing, ...desired.map(({ spec }) => containerKey(spec))]) {
      holders.add(holder).add(gateHolder(holder));
    }
    slots.keepOnly(holders);
  }

  /** Throws if a spec's slot has changed since the spec was made: a plan from that spec would replace the container. */
  function requireSlots(assigned: Slots, desired: readonly Resource<ContainerSpec>[]): void {
    for (const { spec } of desired) {
      const { site, port } = spec;
      if (assigned.addressOf({ site, port, holder: containerKey(spec) }) === spec.boundAddress) continue;
      throw new RetryableError(
        'the slots of containers have changed since the plan began; the next observation uses the new ones',
      );
    }
  }

  async function observeOne(found: ContainerInstance, needsGate: boolean, signal: AbortSignal) {
    const { id, name, mark, running, stopped, endpoint, inPlace, isReaddressed } = found;
    const { owner, hash } = readMark(identity, mark);
    // Without its gate: a restart of this process closed it.
    const lacksGate = needsGate && !onDemand.hasGate(name);
    /** What is wrong with the container, for people. `null`: it serves, or will on demand. */
    const problem = async () => {
      if (owner.kind !== 'ours') return `of ${owner.by}`;
      if (lacksGate) return 'without Tagyard’s port gate';
      if (!inPlace) return 'in a network that is not its site’s';
      if (isReaddressed) return 'with an earlier address of Docker’s default bridge in its hosts file';
      if (needsGate && onDemand.isOnStandby(found)) return null;
      if (!running || endpoint === null) return 'not running';
      const health = await confirmedHealth(endpoint, signal);
      if (health !== 'healthy') return `running, but ${health}`;
      sawHealthy(name, owner.site, endpoint);
      return null;
    };
    // A renamed container of ours gets a key that no desired resource has, so the plan removes it.
    const key = keyOfName(instance, name) ?? `stray/${name}`;
    const ref = { id, name, endpoint: running ? endpoint : null };
    const fault = await problem();
    const observed = { target: CONTAINERS.target, key, owner, ref } as const;
    if (fault === null) return { ...observed, hash };
    const isOutdated = (lacksGate || isReaddressed) && inPlace && (running || stopped);
    return { ...observed, hash: null, found: fault, ...(isOutdated ? { outdated: true as const } : {}) };
  }

  async function remove({ id, name, endpoint }: ContainerRef, signal: AbortSignal): Promise<void> {
    watch.forget(name);
    const found = await runtime.list(new Set([name]), signal);
    if (!found.some((one) => one.name === name)) await onDemand.closeGate(name);
    // If the container is already gone, another one may have its slot.
    if (!found.some((one) => one.id === id)) return;
    if (endpoint !== null) await drained(endpoint, settings.drain, signal);
    await onDemand.closeGate(name);
    await runtime.remove(id, signal);
    // After this, another site may get the port.
    if (endpoint !== null) await released(endpoint, signal);
  }

  const specsOf = (desired: readonly Resource<ContainerSpec>[]) =>
    new Map(desired.map(({ spec }) => [containerName(instance, spec), spec]));

  async function observeAll(
    all: readonly ContainerInstance[],
    specs: ReadonlyMap<string, ContainerSpec>,
    { signal, scope }: { signal: AbortSignal; scope?: Scope | undefined },
  ) {
    const found = all.filter(({ name, mark }) => {
      const { owner } = readMark(identity, mark);
      return specs.has(name) || (owner.kind === 'ours' && (scope?.sites.has(owner.site) ?? true));
    });
    return await Promise.all(
      found.map((one) => probes(() => observeOne(one, specs.get(one.name)?.onDemand ?? false, signal))),
    );
  }

  /** `before`: the containers that were busy when the observation began. */
  function proveHealthy(
    desired: readonly Resource<ContainerSpec>[],
    observed: readonly Observed<ContainerRef>[],
    before: ReadonlySet<string>,
  ) {
    const hashes = new Map(observed.map(({ key, hash }) => [key, hash]));
    for (const { key, hash, spec } of desired) {
      const healthy = hashes.get(key) ?? null;
      // A replacement isn’t proven until it has stayed healthy. One of `before` may have failed since.
      const name = containerName(instance, spec);
      const wasStarting = before.has(name) || busy.has(name);
      if (healthy !== null && hash.startsWith(healthy) && !wasStarting) failures.prove(hash);
    }
  }

  /** `assigned`: where containers that are desired for the first time get their slots. */
  const planning = (assigned: Slots) =>
    ({
      ...CONTAINERS,
      desired: (manifest: LoadedManifest) =>
        desiredContainers(manifest, { ...desiredSettings, slots: assigned }),
      edition: ({ site }: LoadedManifest) => `${recycling.edition(site)} ${assigned.edition(site)}`,
      plan: planResources,
    }) as const;

  return {
    ...planning(slots),

    async observe(desired, signal, scope) {
      const specs = specsOf(desired);
      const { all, holders } = await list(new Set(specs.keys()), signal);
      requireSlots(slots, desired);
      const present = new Set([...specs.keys(), ...all.map(({ name }) => name)]);
      await onDemand.keepOnly(present, scope?.sites);
      watch.keepOnly(present, scope?.sites);
      if (scope === undefined) {
        settings.images?.start(new Set(desired.map(({ spec }) => spec.image)));
        releaseSlots(holders, desired);
        failures.retain(new Set(desired.map(({ hash }) => hash)));
      }
      const before = new Set(busy);
      const found = await observeAll(all, specs, { signal, scope });
      proveHealthy(desired, found, before);
      return found;
    },

    preview() {
      const assigned = slots.copy();
      return {
        ...planning(assigned),
        async observe(desired, signal, scope) {
          const specs = specsOf(desired);
          const { all } = await list(new Set(specs.keys()), signal);
          readSlots(assigned, identity, all);
          requireSlots(assigned, desired);
          return await observeAll(all, specs, { signal, scope });
        },
        async apply() {
          throw new TerminalError('a preview applies nothing');
        },
      };
    },

    async apply({ key, op, site, desired, observed, ended }: Change<ContainerSpec, ContainerRef>, signal) {
      const name = desired === undefined ? observed?.ref.name : containerName(instance, desired.spec);
      if (name === undefined)
        throw new TerminalError(`the change ${op} ${key} has neither a desired nor an observed container`);
      await whileBusy(name, async () => {
        if (desired !== undefined) {
          starting += 1;
          const outcome = await bringUp(desired, signal).finally(() => {
            starting -= 1;
          });
          if (outcome !== 'unhealthy') sawHealthy(name, site, boundEndpoint(desired.spec));
          if (desired.spec.onDemand) {
            await onDemand.openGate(name, desired.spec, { isNew: outcome === 'started' });
          }
        } else if (observed !== undefined) {
          await remove(observed.ref, signal);
          if (ended) await settings.output?.forget(site);
        }
      });
    },

    isBringingUp: () => starting > 0,
    faultOf: (site) => watch.faultOf(site),
    serving: (site) =>
      watch.serving(site).flatMap((name) => {
        const key = keyOfName(instance, name);
        return key?.startsWith(`${site}/processing/`) ? [key] : [];
      }),

    async readSlots(signal) {
      await list(new Set(), signal);
    },

    async *events(signal) {
      const follow = async () => {
        for await (const name of runtime.losses(signal)) {
          void watch.check(name, signal);
          if (!busy.has(name)) changes.emit('change');
        }
      };
      void follow();
      void watch.run(signal);
      try {
        for await (const [site] of on(changes, 'change', { signal })) yield site;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },

    async close() {
      await settings.images?.ended();
      await onDemand.close();
      await runtime.close();
    },
  };
}
