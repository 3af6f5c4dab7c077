import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TerminalError } from '../../base/errors.ts';
import type { Cluster as SitesCluster } from '../../gitops/kubernetes/applier/cluster.ts';
import { gatewayApplier } from '../../gitops/kubernetes/applier/gateway-applier.ts';
import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import { applierConformance, CONFORMANCE_IDENTITY } from '../gitops/appliers/conformance.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage } from '../support/gateway/stage.ts';
import { ApiGate } from '../support/kubernetes/gate.ts';
import { openSites } from '../support/kubernetes/sites.ts';
import { loadedManifest } from '../support/manifest.ts';
import { ask, HOP_SECRET } from '../support/proxy/proxy.ts';
import { selfSigned } from '../support/tls/self-signed.ts';

const { signal } = new AbortController();

/** With a real API server, and with the agent as a process that runs nginx. */
describeWith(['kubernetes', 'root', 'nginx'], 'what the provisioner delivers to a gateway', () => {
  let stage: GatewayStage;
  let gateway: GatewayProcess;
  /** The certificate that all names of the instance's domain get. */
  let wildcard: { cert: string; key: string };
  /** The certificates of custom domains, by name. */
  const own = new Map<string, { cert: string; key: string }>();

  beforeAll(async () => {
    stage = await GatewayStage.start();
    wildcard = await pairOf('*.example.net');
    gateway = await stage.gateway('gateway-1', { TAGYARD_INSTANCE: CONFORMANCE_IDENTITY.instance });
    const started = gateway.start();
    const sites = await open(stage.cluster.kubeconfig);
    const applier = gatewayApplier(sites);
    // Delivers the instance's document even without a site: no gateway is ready before it has that document.
    await applier.observe([], signal);
    await started;
    await applier.close?.();
    await sites.close();
  });
  afterAll(() => stage?.[Symbol.asyncDispose]());

  async function pairOf(host: string) {
    const { cert, key } = await stage.ca.pathsFor(host);
    return { cert: await readFile(cert, 'utf8'), key: await readFile(key, 'utf8') };
  }

  const open = (kubeconfig: string): Promise<SitesCluster> =>
    openSites({
      kubeconfig,
      identity: CONFORMANCE_IDENTITY,
      waitMs: 2_000,
      gateway: {
        namespace: GATEWAYS,
        source: {
          instance: () => ({
            version: 1,
            hopSecret: { current: HOP_SECRET },
            trusted: { cloudflare: [], own: [] },
            edge: { scheme: 'http', address: '127.0.0.1', port: 9 },
          }),
          policies: { ca: '', tokenOf: () => '' },
          refresh: async () => undefined,
          pairs: {
            async pairFor({ host }) {
              const pair = host.endsWith('.example.net') ? wildcard : own.get(host);
              if (pair === undefined) throw new TerminalError(`no certificate for ${host}`);
              return pair;
            },
            retain: async () => undefined,
          },
        },
      },
    });

  applierConformance(
    'the delivery to gateways',
    async () => {
      const gate = await ApiGate.open(stage.cluster);
      const sites = await open(gate.kubeconfig);
      const applier = gatewayApplier(sites);
      await eventually(() => applier.observe([], signal));
      return {
        applier,
        async plantForeign({ spec }) {
          const { metadata, ...object } = spec.reveal();
          const { name } = metadata;
          await stage.cluster.create({ ...object, metadata: { name, namespace: GATEWAYS } });
          return async () => {
            const found = await stage.cluster.kubectl(
              ...['get', 'secret', name, '--namespace', GATEWAYS, '--output', 'json'],
            );
            const { metadata: stored, data } = JSON.parse(found);
            return { uid: stored.uid, labels: stored.labels, data };
          };
        },
        async breakObserve() {
          gate.cut();
          await eventually(() => expect(applier.observe([], signal)).rejects.toThrow());
          return async () => {
            await gate.heal();
            await eventually(() => applier.observe([], signal), { timeoutMs: 60_000 });
          };
        },
        async close() {
          await sites.close();
          gate.cut();
          const sitesOnly = ['--selector', 'tagyard/gateway=site'];
          await stage.cluster.kubectl('delete', 'secrets', '--namespace', GATEWAYS, ...sitesOnly);
          const planted = ['tagyard-site-acme-shop', '--ignore-not-found'];
          await stage.cluster.kubectl('delete', 'secret', '--namespace', GATEWAYS, ...planted);
        },
      };
    },
    {
      change: (manifest) => ({ ...manifest, ports: { processing: 20_500, preview: 20_501 } }),
      timeoutMs: 60_000,
    },
  );

  const CUSTOM = ['tags.acme-shop.example'];
  const secrets = async () => {
    const found = await stage.cluster.kubectl(
      ...['get', 'secrets', '--namespace', GATEWAYS, '--selector', 'tagyard/gateway=certificate'],
      ...['--output', 'name'],
    );
    return found.trim().split('\n');
  };

  /** What a provisioner does with the manifests of its sites. */
  async function provisioner() {
    const sites = await open(stage.cluster.kubeconfig);
    const applier = gatewayApplier(sites);
    const changesOf = async (...manifests: LoadedManifest[]) => {
      const desired = manifests.flatMap((one) => applier.desired(one));
      return applier.plan(desired, await applier.observe(desired, signal)).changes;
    };
    return {
      applier,
      changesOf,
      async apply(...manifests: LoadedManifest[]) {
        for (const change of await changesOf(...manifests)) await applier.apply(change, signal);
      },
      async [Symbol.asyncDispose]() {
        await applier.close?.();
        await sites.close();
      },
    };
  }

  test('is updated with a renewed certificate, which replaces the previous one', async () => {
    await using started = await provisioner();
    const { applier, changesOf, apply } = started;
    const site = loadedManifest();
    await apply(site);
    const [before] = await secrets();
    expect(await secrets()).toHaveLength(1);

    const { origin: host } = site.hostnames;
    wildcard = await pairOf(host);
    const [change] = await changesOf(site);
    expect(change).toMatchObject({ op: 'update', observed: { hash: null, outdated: true } });
    await apply(site);
    expect(await changesOf(site)).toEqual([]);
    await eventually(async () => {
      await changesOf(site);
      expect(await secrets()).toHaveLength(1);
    });
    expect(await secrets()).not.toContain(before);
    // The site has no pods, so the answer is 502; but TLS has the renewed certificate.
    const ca = await readFile(stage.ca.caFile, 'utf8');
    await eventually(async () => expect((await ask(gateway.endpoint, { host, ca })).status).toBe(502));

    // A custom domain without a certificate is an error, but the other names are still served.
    const more = { ...site, customDomains: CUSTOM };
    const [missing] = await changesOf(more);
    if (missing === undefined) throw new Error('a custom domain did not change what is delivered');
    await expect(applier.apply(missing, signal)).rejects.toThrow(`no certificate for ${CUSTOM[0]}`);
    expect((await ask(gateway.endpoint, { host, ca })).status).toBe(502);
    expect((await changesOf(more)).map(({ observed }) => observed?.found)).toEqual([
      `no certificate for ${CUSTOM[0]}`,
    ]);
    await apply();
  });

  test('keeps no replaced certificate of a name, even while another name has no certificate', async () => {
    await using started = await provisioner();
    const { changesOf, apply } = started;
    const [lost, never] = ['lost.acme-shop.example', 'never.acme-shop.example'];
    const site = { ...loadedManifest(), customDomains: [lost, never] };
    const only = await selfSigned([lost]);
    own.set(lost, only);
    await expect(apply(site)).rejects.toThrow(`no certificate for ${never}`);

    // The only certificate of a name continues to be served, although the store has lost it.
    own.delete(lost);
    wildcard = await selfSigned(['*.example.net'], { days: 60 });
    await expect(apply(site)).rejects.toThrow(`no certificate for ${lost}`);
    wildcard = await selfSigned(['*.example.net'], { days: 90 });
    await expect(apply(site)).rejects.toThrow(`no certificate for ${lost}`);
    await eventually(async () => {
      await changesOf(site);
      expect(await secrets()).toHaveLength(2);
    });
    for (const [host, { cert: ca }] of [
      [lost, only],
      [site.hostnames.origin, wildcard],
    ] as const) {
      // Neither the edge nor the site has a server here, so the answer is 502; but TLS has the name's certificate.
      await eventually(async () => expect((await ask(gateway.endpoint, { host, ca })).status).toBe(502));
    }
    await apply();
  });
});
