import { coalesce } from '../../../base/coalesce.ts';
import { type Identity, readMark } from '../../../base/ownership.ts';
import type { ContainerSettings, LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Applier } from '../contract.ts';
import { planResources } from '../plan.ts';
import { toProxyChange, wantedChange } from './applier.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';
import { isPolicyKey, POLICY, type ProxySpec, policyResources } from './desired.ts';
import { shortKey } from './file-name.ts';
import { expectInstalled, installAlone } from './install-alone.ts';

/** Sites of one revision are batched into one reload. */
const WINDOW_MS = 50;

interface PolicyApplierDeps {
  /** The proxy applier's backend. */
  readonly backend: ProxyBackend;
  readonly identity: Identity;
  readonly containers: ContainerSettings;
}

/** The vhosts of policy scripts, in the same proxy as all others. `apply` resolves once the proxy serves the script. */
export function policyApplier({
  backend,
  identity,
  containers,
}: PolicyApplierDeps): Applier<ProxySpec, string> {
  const install = coalesce<ProxyChange, { changed: boolean }>((items) => installAlone(backend, items), {
    windowMs: WINDOW_MS,
  });
  return {
    ...POLICY,
    desired: (manifest: LoadedManifest) => policyResources(manifest, containers),
    plan: planResources,
    async observe(desired, signal, scope) {
      signal.throwIfAborted();
      if (scope === undefined) {
        expectInstalled(
          backend,
          POLICY.target,
          desired.map((one) => wantedChange(identity, one)),
        );
      }
      const keys = new Map(desired.map(({ key }) => [shortKey(key), key]));
      const scripts = (await backend.installed()).filter(({ key }) => isPolicyKey(key));
      return scripts.map(({ key: installed, mark, intact, outdated, path }) => {
        const { owner, hash } = readMark(identity, mark);
        const observed = { target: POLICY.target, key: keys.get(installed) ?? installed, owner, ref: path };
        if (intact) return { ...observed, hash };
        const found = `edited or not served (${path})`;
        return { ...observed, hash: null, found, ...(outdated ? { outdated: true as const } : {}) };
      });
    },
    async apply(change, signal) {
      signal.throwIfAborted();
      await install(toProxyChange(identity, change));
    },
  };
}
