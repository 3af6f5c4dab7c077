import { EventEmitter, on } from 'node:events';
import { type Clock, systemClock } from '../../../base/clock.ts';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import { limit } from '../../../base/limit.ts';
import { formatMark, type Identity, networkName, readMark } from '../../../base/ownership.ts';
import type { Applier, Change, Resource, Shortfall } from '../contract.ts';
import { planResources } from '../plan.ts';
import { desiredNetworks, NETWORK } from './desired.ts';
import type { DockerNetwork, DockerNetworks } from './docker-networks.ts';
import type { Firewall, FirewallState } from './firewall.ts';
import type { Range } from './ranges.ts';
import { bridgeName, type FirewallNames } from './rules.ts';
import { freeSubnet } from './subnets.ts';

interface NetworkOptions {
  readonly identity: Identity;
  readonly names: FirewallNames;
  /** The sites' subnets are taken from these. */
  readonly ranges: readonly Range[];
  readonly networks: DockerNetworks;
  /** `null`: Tagyard neither checks nor changes the firewall. */
  readonly firewall: Firewall | null;
  /** Addresses that no subnet may cover: this host's routes, its nameservers. */
  readonly reserved: () => Promise<readonly Range[]>;
  /** Names of networks that vanished; an empty name if events were missed. */
  readonly losses: (signal: AbortSignal) => AsyncIterable<string>;
  /** Milliseconds between two checks of the firewall, which sends no events; default 10,000. */
  readonly checkEveryMs?: number;
  readonly clock?: Clock;
}

const CHECK_EVERY_MS = 10_000;
/** How many subnets the engine may refuse in a row. It knows of networks that it doesn't list. */
const MOST_REFUSED = 64;

type NetworkChange = Change<null, string>;

/** A network for each site, and one set of firewall rules for all of them. */
export function networkApplier(options: NetworkOptions): Applier<null, string> {
  const { identity, names, ranges, networks, firewall, clock = systemClock } = options;
  const changes = new EventEmitter();
  /**
   * Runs one change at a time: two subnets must not be chosen in parallel, and the rules are removed with the last
   * network.
   */
  const exclusive = limit(1);
  /** Names of networks that this applier is removing. */
  const busy = new Set<string>();
  let state: FirewallState = { kind: 'intact' };
  /** True if this daemon has networks. Without any there are no rules. */
  let hasNetworks = false;
  /**
   * True if the rules were removed after the last network. False at the start: an earlier process may have ended after
   * it had removed the network and before it removed the rules.
   */
  let isUnused = false;

  const isOurs = ({ mark }: DockerNetwork) => readMark(identity, mark).owner.kind === 'ours';
  const isAsDesired = ({ bridge }: DockerNetwork) => bridge?.startsWith(names.bridgePrefix) ?? false;

  async function ensureFirewall(): Promise<void> {
    isUnused = false;
    if (firewall !== null) state = await firewall.ensure();
  }

  function observeOne(found: DockerNetwork) {
    const { owner, hash } = readMark(identity, found.mark);
    const isExpected = owner.kind === 'ours' && found.name === networkName(identity.instance, owner.site);
    const site =
      owner.kind === 'ours' ? owner.site : found.name.slice(networkName(identity.instance, '').length);
    const key = isExpected || owner.kind === 'foreign' ? site : `stray/${found.id}`;
    const observed = { target: NETWORK.target, key, owner, ref: found.id } as const;
    if (!isAsDesired(found)) return { ...observed, hash: null, found: 'a network that does not isolate' };
    if (state.kind !== 'broken') return { ...observed, hash };
    // One set of rules for all sites, derived from settings, nameservers and the release: no drift of this site.
    const different = 'in order, but the firewall rules of all sites differ from the desired ones';
    return { ...observed, hash: null, found: different, outdated: true } as const;
  }

  async function bringUp({ site, hash, adopt }: Resource<null>, signal: AbortSignal): Promise<void> {
    const name = networkName(identity.instance, site);
    const mark = formatMark(identity, site, hash);
    const all = await networks.list(signal);
    for (const found of all.filter((one) => one.name === name)) {
      const { owner } = readMark(identity, found.mark);
      if (owner.kind === 'foreign' && !adopt) {
        throw new RetryableError(`the network ${name} was taken by ${owner.by} since it was observed`);
      }
      if (found.mark === mark && isAsDesired(found)) return;
      // This disconnects its containers, because the network doesn't isolate them as desired. They are started again.
      await remove(found, { force: true }, signal);
    }
    const others = all.filter((one) => one.name !== name);
    const taken = [...others.flatMap(({ subnets }) => subnets), ...(await options.reserved())];
    for (let refused = 0; refused < MOST_REFUSED; refused += 1) {
      const subnet = freeSubnet(ranges, taken);
      if (subnet === null) break;
      const bridge = bridgeName(names, subnet);
      if (await networks.create({ name, mark, bridge, subnet }, signal)) return;
      taken.push(subnet);
    }
    throw new TerminalError('no subnet is free in CONTAINER_NETWORKS: add a range to it');
  }

  async function remove(
    { id, name }: Pick<DockerNetwork, 'id' | 'name'>,
    how: { readonly force: boolean },
    signal: AbortSignal,
  ): Promise<void> {
    busy.add(name);
    try {
      await networks.remove(id, how, signal);
    } finally {
      busy.delete(name);
    }
  }

  async function takeDown({ site, observed }: NetworkChange, signal: AbortSignal): Promise<void> {
    const name = networkName(identity.instance, site);
    if (observed !== undefined) await remove({ id: observed.ref, name }, { force: false }, signal);
    await removeUnusedRules(signal);
  }

  async function removeUnusedRules(signal: AbortSignal): Promise<void> {
    if (firewall === null || isUnused || (await networks.list(signal)).some(isOurs)) return;
    const { kind } = await firewall.remove();
    isUnused = kind === 'intact';
  }

  async function followLosses(signal: AbortSignal): Promise<void> {
    for await (const name of options.losses(signal)) if (!busy.has(name)) changes.emit('change');
  }

  async function watchFirewall(watched: Firewall, signal: AbortSignal): Promise<void> {
    const { checkEveryMs = CHECK_EVERY_MS } = options;
    for (;;) {
      await clock.sleep(checkEveryMs, { signal, ref: false });
      if (signal.aborted) return;
      await exclusive(async () => {
        if (!hasNetworks) return await removeUnusedRules(signal);
        const { kind } = await watched.check();
        if (kind !== state.kind) changes.emit('change');
      }).catch(() => undefined); // the next observation reports it
    }
  }

  return {
    ...NETWORK,
    desired: desiredNetworks,
    plan: planResources,

    async observe(desired, signal, scope) {
      const wanted = new Set(desired.map(({ site }) => networkName(identity.instance, site)));
      const [all, checked] = await Promise.all([networks.list(signal), firewall?.check()]);
      state = checked ?? { kind: 'intact' };
      hasNetworks = all.some(isOurs);
      return all
        .filter((one) => {
          const { owner } = readMark(identity, one.mark);
          return wanted.has(one.name) || (owner.kind === 'ours' && (scope?.sites.has(owner.site) ?? true));
        })
        .map(observeOne);
    },

    async apply(change, signal) {
      await exclusive(async () => {
        if (change.desired === undefined) return await takeDown(change, signal);
        // Before the network, so that no container is ever without the rules.
        await ensureFirewall();
        await bringUp(change.desired, signal);
      });
    },

    shortfall: (): Shortfall | null =>
      state.kind === 'denied'
        ? {
            reason: 'NotIsolated',
            message: `the containers may reach this host and private addresses: ${state.reason}. Run the provisioner with CAP_NET_ADMIN, or set CONTAINER_FIREWALL=off to accept this`,
          }
        : null,

    async *events(signal) {
      void followLosses(signal);
      if (firewall !== null) void watchFirewall(firewall, signal);
      try {
        for await (const _ of on(changes, 'change', { signal })) yield;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    },
  };
}
