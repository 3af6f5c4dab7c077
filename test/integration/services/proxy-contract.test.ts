import { readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { proxyApplier } from '../../../gitops/appliers/proxy/applier.ts';
import type { ProxyBackend, ProxySettings } from '../../../gitops/appliers/proxy/backend.ts';
import { embeddedBackend } from '../../../gitops/appliers/proxy/embedded/backend.ts';
import { fileNameOf } from '../../../gitops/appliers/proxy/file-name.ts';
import { nginxBackend } from '../../../gitops/appliers/proxy/nginx/backend.ts';
import { containerSpecs, type LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Slots } from '../../../sites/manifest/slots.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../../gitops/appliers/conformance.ts';
import { describeWith } from '../../support/components.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { NGINX_SETTINGS } from '../../support/proxy/nginx.ts';
import { proxyHome } from '../../support/proxy/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';

/** Where a backend keeps its files, below its prefix. */
interface Layout {
  readonly sites: string;
  readonly ending: `.${string}`;
  /** A foreign file that the proxy accepts. */
  readonly foreign: string;
}

function conformance(
  name: string,
  backendOf: (settings: ProxySettings) => ProxyBackend,
  layout: Layout,
): void {
  applierConformance(
    name,
    async () => {
      const home = await proxyHome(CONFORMANCE_IDENTITY);
      const backend = backendOf(home.settings);
      const { tlsPort } = await backend.start();
      const containers = { slots: new Slots('127.91'), originPort: tlsPort };
      const upstreams = new Map<string, Awaited<ReturnType<typeof startUpstream>>>();
      const sites = join(home.settings.prefix, layout.sites);
      return {
        applier: proxyApplier({ backend, identity: CONFORMANCE_IDENTITY, containers, certificates: home.ca }),
        async prepare(manifest: LoadedManifest) {
          for (const { address, port } of containerSpecs(manifest, containers)) {
            const at = `${address}:${port}`;
            if (!upstreams.has(at)) upstreams.set(at, await startUpstream({ address, port }));
          }
        },
        async plantForeign({ key }) {
          const path = join(sites, fileNameOf(key, layout.ending));
          await writeFile(path, layout.foreign);
          return () => readFile(path, 'utf8');
        },
        async breakObserve() {
          await rename(sites, `${sites}.away`);
          // Reading this link fails with ELOOP. A missing folder would not do: on nginx it counts as an empty one.
          await symlink(sites, sites);
          return async () => {
            await rm(sites);
            await rename(`${sites}.away`, sites);
          };
        },
        async close() {
          await backend.close();
          await Promise.all([...upstreams.values()].map((upstream) => upstream.close()));
          await home.remove();
        },
      };
    },
    {
      change: (manifest) => ({
        ...manifest,
        customDomains: ['metrics.acme-shop.example'],
        resources: { ...manifest.resources, processing: { ...manifest.resources.processing, memory: '1g' } },
      }),
      manifest: (site, number) => loadedManifest(site, number + 400),
    },
  );
}

conformance('the proxy applier on the embedded proxy', embeddedBackend, {
  sites: 'sites',
  ending: '.json',
  foreign: '{ "foreign": "file" }',
});

describeWith('nginx', 'with nginx', () => {
  conformance('the proxy applier on nginx', (settings) => nginxBackend({ ...settings, ...NGINX_SETTINGS }), {
    sites: join('current', 'sites'),
    ending: '.conf',
    foreign: '# kept by hand\n',
  });
});
