import { coalesce } from '../../base/coalesce.ts';
import { formatMark, type Identity, readMark } from '../../base/ownership.ts';
import type { ContainerSettings } from '../../manifest/containers.ts';
import type { Applier, Change } from '../contract.ts';
import { planResources } from '../plan.ts';
import type { ProxyBackend, ProxyChange } from './backend.ts';
import type { CertificateSource, ServedName } from './certificates.ts';
import type { CloudflareRanges } from './cloudflare-ranges.ts';
import { PROXY, type ProxySpec, proxyResources, servedName } from './desired.ts';
import { awaitForwarding } from './probe.ts';

/** Long enough for the sites of one revision to share a reload, short enough that nobody waits for it. */
const WINDOW_MS = 50;
/**
 * A reload doubles nginx's memory until the workers of before have ended, so sites that come up one after another share
 * reloads: after one, nginx is left alone for so many times as long as it took; for more while containers are coming up,
 * which need the host's time themselves. The first site of all waits for nobody, nor does the last of those whose
 * containers were coming up meanwhile.
 */
const REST = 3;
const REST_WHILE_EXPECTING = 10;
const LONGEST_REST_MS = 15_000;

interface ProxyApplierDeps {
  /** Started, and closed by whoever started it. */
  readonly backend: ProxyBackend;
  readonly identity: Identity;
  readonly containers: ContainerSettings;
  /** The backend's own. */
  readonly certificates: CertificateSource;
  /** How long a new upstream may answer 502 before `apply` fails, milliseconds. */
  readonly probeTimeoutMs?: number;
  /** Containers are coming up whose vhosts will be asked for next. */
  readonly isExpecting?: () => boolean;
  /** Asked for anew with whole looks, where they are old. */
  readonly ranges?: CloudflareRanges;
}

/**
 * Vhosts in a proxy. Changes that are in flight together become one batch, and so one reload; `apply` resolves once
 * the proxy serves the change and the site's origin is reached through it.
 */
export function proxyApplier(deps: ProxyApplierDeps): Applier<ProxySpec, string> {
  const { backend, identity, containers, certificates, probeTimeoutMs = 10_000 } = deps;
  const { isExpecting = () => false } = deps;
  const install = coalesce<ProxyChange, { changed: boolean }>(installBatch, {
    windowMs: WINDOW_MS,
    restMs: (tookMs) => Math.min((isExpecting() ? REST_WHILE_EXPECTING : REST) * tookMs, LONGEST_REST_MS),
    isExpecting,
  });
  /** Something was removed or replaced, of which a certificate may be left. */
  let namesMayGo = false;
  /** Served, but not yet seen to reach their upstream: shown as drift, so that the next pass asks again. */
  const unproven = new Set<string>();
  let keptUp: Promise<void> | null = null;

  return {
    ...PROXY,
    desired: (manifest) =>
      proxyResources(manifest, containers, (host, tls) => certificates.edition?.(host, tls)),
    edition({ site, hostnames, customDomains, tls }) {
      const names = [hostnames.origin, hostnames.preview, ...customDomains];
      const editions = names.map((host) => certificates.edition?.(host, tls.mode));
      return [containers.edition?.(site), ...editions].join(' ');
    },
    async observe(_desired, signal, scope) {
      signal.throwIfAborted();
      if (scope === undefined) keepUp();
      return (await backend.installed()).map(({ key, mark, intact, path }) => {
        const { owner, hash } = readMark(identity, mark);
        const sound = intact && !unproven.has(key);
        return { target: PROXY.target, key, owner, ref: path, hash: sound ? hash : null };
      });
    },
    plan: planResources,
    async apply(change, signal) {
      signal.throwIfAborted();
      namesMayGo ||= change.op !== 'create';
      const { changed } = await install(toProxyChange(identity, change));
      const origin = change.desired?.spec.vhosts.find(({ kind }) => kind === 'origin');
      // Without a certificate there is no TLS to be probed through; DNS and the certificate come first.
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

  /**
   * What is to be done now and then, and holds nobody up: ranges that changed show as drift in the next look, and logs
   * that can't be put aside today can tomorrow.
   */
  function keepUp(): void {
    void deps.ranges?.refresh();
    if (keptUp === null && backend.upkeep !== undefined) {
      keptUp = backend
        .upkeep()
        .catch(() => undefined)
        .finally(() => {
          keptUp = null;
        });
    }
  }

  async function hasCertificate({ host, tls }: ServedName): Promise<boolean> {
    return (await certificates.pathsFor(host, tls)) !== null;
  }

  async function installBatch(items: readonly ProxyChange[]) {
    const outcomes = await backend.install(items);
    if (namesMayGo) {
      // What was installed is installed; the certificates are tried again with the next batch.
      await dropCertificates().catch(() => undefined);
    }
    return outcomes;
  }

  /**
   * A certificate goes once nothing serves its name any more: last in a batch, since another one may be asking for
   * certificates of names that aren't served yet.
   */
  async function dropCertificates(): Promise<void> {
    const served: ServedName[] = [];
    for (const { names, mark } of await backend.installed()) {
      // A file of ours that can't be read may be about any name.
      if (names === null && readMark(identity, mark).owner.kind === 'ours') return;
      served.push(...(names ?? []));
    }
    await certificates.retain(served);
    namesMayGo = false;
  }
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
