import { coalesce } from '../../../base/coalesce.ts';
import { type Log, warner } from '../../../base/log.ts';
import { formatMark, type Identity, readMark } from '../../../base/ownership.ts';
import { tlsOf } from '../../../sites/manifest/certificate-check.ts';
import type { ContainerSettings, LoadedManifest } from '../../../sites/manifest/containers.ts';
import type { Applier, Change, Resource } from '../contract.ts';
import { planResources } from '../plan.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';
import type { CertificateSource, ServedName } from './certificates.ts';
import type { CloudflareRanges } from './cloudflare-ranges.ts';
import { isPolicyKey, PROXY, type ProxySpec, proxyResources, servedName } from './desired.ts';
import { shortKey } from './file-name.ts';
import { expectInstalled, installAlone } from './install-alone.ts';
import { awaitForwarding } from './probe.ts';

/** Long enough to batch the sites of one revision into one reload, too short to delay anything noticeably. */
const WINDOW_MS = 50;
/**
 * A reload doubles nginx's memory until the old workers have ended, so sites that come up one after another are batched
 * into fewer reloads: after a reload, the next one waits for this many times its duration. It waits longer while
 * containers are starting, because they need the CPU; this longer wait ends once none are starting any more. The
 * first site doesn't wait.
 */
const REST = 3;
const REST_WHILE_EXPECTING = 10;
const LONGEST_REST_MS = 15_000;

interface ProxyApplierDeps {
  /** Started already; the caller closes it. */
  readonly backend: ProxyBackend;
  readonly identity: Identity;
  readonly containers: ContainerSettings;
  /** The same as the backend's. */
  readonly certificates: CertificateSource;
  /** How long a new upstream may answer 502 before `apply` fails, milliseconds. */
  readonly probeTimeoutMs?: number;
  /** True while containers are starting whose vhosts will be applied next. */
  readonly isExpecting?: () => boolean;
  /** Refreshed with each full observation if they are old. */
  readonly ranges?: CloudflareRanges;
  readonly log?: Log;
}

/**
 * Vhosts in a proxy. Concurrent changes are one batch, and so one reload. `apply` resolves once the proxy serves the
 * change and forwards requests to the site's origin.
 */
export function proxyApplier(deps: ProxyApplierDeps): Applier<ProxySpec, string> {
  const { backend, identity, containers, certificates, probeTimeoutMs = 10_000 } = deps;
  const { isExpecting = () => false } = deps;
  const install = coalesce<ProxyChange, { changed: boolean }>(installBatch, {
    windowMs: WINDOW_MS,
    restMs: (tookMs) => Math.min((isExpecting() ? REST_WHILE_EXPECTING : REST) * tookMs, LONGEST_REST_MS),
    isExpecting,
  });
  /** A vhost was removed or replaced, and its certificate may be unused now. */
  let namesRemoved = false;
  /**
   * Keys that are served, but whose upstream did not answer yet: reported as outdated, so the next pass probes again.
   */
  const unproven = new Set<string>();
  let housekeeping: Promise<void> | null = null;
  let knownStrangers = '';
  const warnOnce = warner((message) =>
    deps.log?.warn({}, `foreign files in the proxy’s folder can’t be listed: ${message}`),
  );

  const planning = (settings: ContainerSettings) =>
    ({
      ...PROXY,
      desired: (manifest: LoadedManifest) =>
        proxyResources(manifest, settings, (host, tls) => certificates.edition?.(host, tls)),
      edition({ site, hostnames, customDomains, tls }: LoadedManifest) {
        const names = [hostnames.origin, hostnames.preview, ...customDomains];
        const editions = names.map((host) => certificates.edition?.(host, tlsOf(tls, host)));
        return [settings.edition?.(site), settings.slots.edition(site), ...editions].join(' ');
      },
      plan: planResources,
    }) as const;

  const applier: Applier<ProxySpec, string> = {
    ...planning(containers),
    preview: () => ({ ...applier, ...planning({ ...containers, slots: containers.slots.copy() }) }),
    async observe(desired, signal, scope) {
      signal.throwIfAborted();
      if (scope === undefined) {
        startHousekeeping();
        expectInstalled(
          backend,
          PROXY.target,
          desired.map((one) => wantedChange(identity, one)),
        );
      }
      const keys = new Map(desired.map(({ key }) => [shortKey(key), key]));
      const vhosts = (await backend.installed()).filter(({ key }) => !isPolicyKey(key));
      return vhosts.map(({ key: installed, mark, intact, outdated, path }) => {
        const key = keys.get(installed) ?? installed;
        const { owner, hash } = readMark(identity, mark);
        const observed = { target: PROXY.target, key, owner, ref: path };
        if (intact && !unproven.has(key)) return { ...observed, hash };
        const found = intact ? 'served, but its upstream does not answer' : `edited or not served (${path})`;
        const isOutdated = intact || outdated;
        return { ...observed, hash: null, found, ...(isOutdated ? { outdated: true as const } : {}) };
      });
    },
    async apply(change, signal) {
      signal.throwIfAborted();
      namesRemoved ||= change.op !== 'create';
      const { changed } = await install(toProxyChange(identity, change));
      const origin = change.desired?.spec.vhosts.find(({ kind }) => kind === 'origin');
      // Without a certificate, there is no TLS to probe. The certificate is issued after DNS is set.
      if (origin === undefined || !(await hasCertificate(servedName(origin)))) {
        unproven.delete(change.key);
        return;
      }
      if (!changed && !unproven.has(change.key)) return;
      unproven.add(change.key);
      await awaitForwarding(backend.endpoint(), origin.host, { timeoutMs: probeTimeoutMs, signal });
      unproven.delete(change.key);
    },
    events: (signal) => backend.events(signal),
  };
  return applier;

  /** Occasional housekeeping in the background. Changed ranges make vhosts outdated in the next pass. */
  function startHousekeeping(): void {
    void deps.ranges?.refresh();
    if (housekeeping === null) {
      housekeeping = nameStrangers()
        .then(() => warnOnce(null), warnOnce)
        .finally(() => {
          housekeeping = null;
        });
    }
  }

  async function nameStrangers(): Promise<void> {
    const files = (await backend.strangers?.()) ?? [];
    const known = files.join('\n');
    if (known === knownStrangers) return;
    knownStrangers = known;
    if (files.length > 0)
      deps.log?.warn({ files }, 'files in the proxy’s folder are not Tagyard’s: remove them');
  }

  async function hasCertificate({ host, tls }: ServedName): Promise<boolean> {
    return (await certificates.pathsFor(host, tls)) !== null;
  }

  async function installBatch(items: readonly ProxyChange[]) {
    const outcomes = await installAlone(backend, items);
    if (namesRemoved) {
      // An error here doesn't undo the changes: the next batch then removes unused certificates.
      await dropCertificates().catch(() => undefined);
    }
    return outcomes;
  }

  /**
   * Removes certificates whose names are no longer served. It runs at the end of a batch, since another change may need
   * certificates of names that aren't served yet.
   */
  async function dropCertificates(): Promise<void> {
    const served: ServedName[] = [];
    for (const { names, mark } of await backend.installed()) {
      // If a file of ours is unreadable, it may serve any name, so remove nothing.
      if (names === null && readMark(identity, mark).owner.kind === 'ours') return;
      served.push(...(names ?? []));
    }
    await certificates.retain(served);
    namesRemoved = false;
  }
}

export function toProxyChange(identity: Identity, change: Change<ProxySpec, string>): ProxyChange {
  const { key, site, desired } = change;
  if (desired !== undefined) return wantedChange(identity, desired);
  return { key, mark: formatMark(identity, site, ''), adopt: false, spec: null };
}

export function wantedChange(
  identity: Identity,
  { key, site, hash, adopt, spec }: Resource<ProxySpec>,
): ProxyChange {
  return { key, mark: formatMark(identity, site, hash), adopt, spec };
}
