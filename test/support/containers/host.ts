import { containersApplier } from '../../../gitops/appliers/containers/applier.ts';
import type { Runtime } from '../../../gitops/appliers/containers/runtime.ts';
import type { Applier, Change } from '../../../gitops/appliers/contract.ts';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend } from '../../../gitops/appliers/proxy/backend.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { executeSite, type SiteOutcome } from '../../../gitops/loop/execute.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { NGINX_SETTINGS } from '../proxy/nginx.ts';
import { proxyHome } from '../proxy/proxy.ts';
import type { containersSettings } from './stage.ts';

type Settings = ReturnType<typeof containersSettings>;

/**
 * One host with containers behind a real nginx. It runs passes as the daemon does: observe, plan, execute in the order
 * of the targets.
 */
export async function containersHost(runtime: Runtime, settings: Settings) {
  await using stack = new AsyncDisposableStack();
  const { identity } = settings;
  const home = await proxyHome(identity);
  stack.defer(() => home.remove());
  const backend: ProxyBackend = nginxBackend({ ...home.settings, ...NGINX_SETTINGS });
  await backend.start();
  stack.defer(() => backend.close());
  const edition = (site: string) => settings.recycling.edition(site);
  const build = (changed: Partial<Settings> = {}, other = runtime) => ({
    containers: containersApplier({ ...settings, ...changed }, other),
    proxy: proxyApplier({
      backend,
      identity,
      containers: { ...settings, edition },
      certificates: home.ca,
    }),
  });
  let appliers = build();
  const { signal } = new AbortController();

  async function plan(manifests: readonly LoadedManifest[]): Promise<Change[]> {
    const wanted: Applier[] = [appliers.containers, appliers.proxy] as never; // two kinds of appliers with distinct targets
    const plans = await Promise.all(
      wanted.map(async (applier) => {
        const desired = manifests.flatMap((manifest) => applier.desired(manifest));
        return applier.plan(desired, await applier.observe(desired, signal)).changes;
      }),
    );
    return plans.flat();
  }

  async function run(site: string, changes: readonly Change[], within = signal): Promise<SiteOutcome> {
    const all: [Change['target'], Applier][] = [
      ['containers', appliers.containers as never], // an applier gets only its own changes
      ['proxy', appliers.proxy as never],
    ];
    return await executeSite(
      {
        changes: changes.filter((change) => change.site === site),
        unobserved: new Map(),
        removal: false,
        dnsRemovedAt: null,
        superseded: new AbortController().signal,
      },
      {
        appliers: new Map(all),
        drainSeconds: 0,
        onDnsRemoved: () => undefined,
        onStep: () => undefined,
      },
      within,
    );
  }

  const owned = stack.move();
  return {
    ca: home.ca,
    endpoint: backend.endpoint(),
    backend,
    get containers() {
      return appliers.containers;
    },
    plan,
    run,
    /** One pass over all sites of this host; throws the first failure. */
    async apply(...manifests: LoadedManifest[]): Promise<void> {
      const changes = await plan(manifests);
      const sites = [...new Set(changes.map(({ site }) => site))];
      const outcomes = await Promise.all(sites.map((site) => run(site, changes)));
      for (const { failures } of outcomes) for (const { error } of failures) throw error;
    },
    /** Replaces the daemon by a new one without state. */
    restart(changed: Partial<Settings> = {}, other = runtime): void {
      appliers = build(changed, other);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
