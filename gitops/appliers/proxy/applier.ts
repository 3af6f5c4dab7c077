import { coalesce } from '../../coalesce.ts';
import type { ContainerSettings } from '../../manifest/containers.ts';
import { formatMark, type Identity, readMark } from '../../ownership.ts';
import { planResources } from '../../plan.ts';
import type { Applier, Change } from '../contract.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';
import { type ProxySpec, proxyResources } from './desired.ts';
import { awaitForwarding } from './probe.ts';

/** Long enough for the sites of one revision to share a reload, short enough that nobody waits for it. */
const WINDOW_MS = 50;

export interface ProxyApplierDeps {
  /** Started already. */
  readonly backend: ProxyBackend;
  readonly identity: Identity;
  readonly containers: ContainerSettings;
  /** How long a new upstream may answer 502 before `apply` fails, milliseconds. */
  readonly probeTimeoutMs?: number;
}

/**
 * Vhosts in a proxy. Changes that are in flight together become one batch, and so one reload; `apply` resolves once
 * the proxy serves the change and the site's origin is reached through it.
 */
export function proxyApplier(deps: ProxyApplierDeps): Applier<ProxySpec, string> {
  const { backend, identity, containers, probeTimeoutMs = 10_000 } = deps;
  const install = coalesce<ProxyChange, { changed: boolean }>((items) => backend.install(items), {
    windowMs: WINDOW_MS,
  });
  /** Served, but not yet seen to reach their upstream: shown as drift, so that the next pass asks again. */
  const unproven = new Set<string>();

  return {
    target: 'proxy',
    desired: (manifest) => proxyResources(manifest, containers),
    async observe(_desired, signal) {
      signal.throwIfAborted();
      return (await backend.installed()).map(({ key, mark, intact, path }) => {
        const { owner, hash } = readMark(identity, mark);
        const sound = intact && !unproven.has(key);
        return { target: 'proxy', key, owner, ref: path, hash: sound ? hash : null };
      });
    },
    plan: planResources,
    async apply(change, signal) {
      signal.throwIfAborted();
      const { changed } = await install(toProxyChange(identity, change));
      const origin = change.desired?.spec.vhosts.find(({ kind }) => kind === 'origin');
      if (origin === undefined) {
        unproven.delete(change.key);
        return;
      }
      if (!changed && !unproven.has(change.key)) return;
      unproven.add(change.key);
      await awaitForwarding(backend.endpoint(), origin.host, { timeoutMs: probeTimeoutMs, signal });
      unproven.delete(change.key);
    },
    events: (signal) => backend.events(signal),
    close: () => backend.close(),
  };
}

function toProxyChange(identity: Identity, change: Change<ProxySpec, string>): ProxyChange {
  const { key, site, desired } = change;
  return {
    key,
    mark: formatMark(identity, site, desired?.hash ?? ''),
    adopt: desired?.adopt ?? false,
    spec: desired?.spec ?? null,
  };
}
