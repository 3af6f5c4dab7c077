import { afterAll, beforeAll, expect, test } from 'vitest';
import { runningMaster, workersOf } from '../../gitops/appliers/proxy/nginx/process.ts';
import { limit } from '../../gitops/base/limit.ts';
import type { SiteDocument } from '../../gitops/delivery/documents.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type GatewayProcess, GatewayStage, SITES } from '../support/gateway/stage.ts';
import { ask } from '../support/proxy/proxy.ts';
import { startUpstream } from '../support/upstream.ts';

const COUNT = 1_000;
const CUSTOM_DOMAINS = 200;
const IDLE_SECONDS = 3;
const WAIT = { timeoutMs: 60_000 };

describeWith(['kubernetes', 'root', 'nginx'], 'two gateways with many sites', () => {
  let stage: GatewayStage;
  let gateways: GatewayProcess[];
  let address: string;
  let first: Awaited<ReturnType<typeof startUpstream>>;
  let second: Awaited<ReturnType<typeof startUpstream>>;

  const hostOf = (site: string) => `${site}-origin.example.net`;
  const serviceOf = (site: string) => `tag-${site}-processing`;
  const customOf = (site: string) => `${site}.customers.example`;
  const deliver = (site: string, port: number, custom = false) =>
    stage.deliverSite(site, [
      { kind: 'origin', host: hostOf(site), namespace: SITES, service: serviceOf(site), port },
      ...(custom
        ? [{ kind: 'custom', host: customOf(site), edgeHost: `${site}.example.net` } as const]
        : ([] satisfies SiteDocument['names'])),
    ]);
  const workers = () =>
    Promise.all(
      gateways.map(async ({ directory }) => await workersOf((await runningMaster(directory)) ?? 0)),
    );
  const reaches = async (site: string, upstream: string) => {
    for (const { endpoint } of gateways) {
      await eventually(async () => {
        const { headers } = await ask(endpoint, { host: hostOf(site) });
        expect(headers['x-upstream']).toBe(upstream);
      }, WAIT);
    }
  };

  beforeAll(async () => {
    stage = await GatewayStage.start();
    address = await stage.podAddress(1);
    [first, second] = await Promise.all([
      startUpstream({ address, name: 'first' }),
      startUpstream({ address, name: 'second' }),
    ]);
    await stage.deliverInstance();
    await stage.deliverCertificate('tls-platform', '*.example.net');
    await stage.deliverCertificate('tls-customers', '*.customers.example');
    const some = limit(25);
    await Promise.all(
      Array.from({ length: COUNT }, (_, index) =>
        some(() => deliver(`site-${index}`, first.port, index < CUSTOM_DOMAINS)),
      ),
    );
    await stage.list(serviceOf('site-0'), first.port, [{ address }]);
    const env = { PREVIEW_IDLE_SECONDS: String(IDLE_SECONDS) };
    gateways = [await stage.gateway('gateway-1', env), await stage.gateway('gateway-2', env)];
    await Promise.all(gateways.map((gateway) => gateway.start()));
  }, 120_000);
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await Promise.all([first?.close(), second?.close()]);
  });

  test('take a change of one site, a new and a removed one without a reload', async () => {
    await reaches('site-0', 'first');
    const before = await workers();
    expect(before.every((ids) => ids.length > 0)).toBe(true);
    await stage.list(serviceOf('site-0'), second.port, [{ address }]);
    await deliver('site-0', second.port, true);
    await reaches('site-0', 'second');
    await stage.list(serviceOf('new'), first.port, [{ address }]);
    await deliver('new', first.port);
    await reaches('new', 'first');
    await stage.withdraw('site-new');
    for (const { endpoint } of gateways) {
      await eventually(async () => {
        await expect(ask(endpoint, { host: hostOf('new') })).rejects.toThrow(/hang up|reset/i);
      }, WAIT);
    }
    expect(await workers()).toEqual(before);
    // A custom domain is a server of its own.
    await deliver('site-999', first.port, true);
    await eventually(async () => {
      const after = await workers();
      for (const [index, ids] of after.entries()) expect(ids).not.toEqual(before[index]);
    }, WAIT);
  });

  test('start a preview server for its first request, and stop it when neither has one', async () => {
    const name = 'tag-demand-preview';
    const host = 'demand-preview.example.net';
    const labels = { app: name };
    await stage.cluster.create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: SITES },
      spec: {
        replicas: 0,
        selector: { matchLabels: labels },
        template: {
          metadata: { labels },
          spec: { containers: [{ name: 'server', image: 'preview.test/server:1' }] },
        },
      },
    });
    const replicas = async () =>
      Number(
        await stage.cluster.kubectl(
          ...['get', 'deployment', name, '--namespace', SITES, '--output', 'jsonpath={.spec.replicas}'],
        ),
      );
    const pods = { namespace: SITES, service: name, port: first.port };
    await stage.deliverSite('demand', [{ kind: 'preview', host, ...pods, onDemand: name }]);
    const [one] = gateways;
    if (one === undefined) throw new Error('there are gateways');
    const use = () => ask(one.endpoint, { host, timeoutMs: 60_000 });
    // Held until the pod is there, once the name is known.
    const answered = eventually(use, WAIT);
    await eventually(async () => expect(await replicas()).toBe(1), WAIT);
    await stage.list(name, first.port, [{ address }]);
    expect((await answered).headers['x-upstream']).toBe('first');
    // The other gateway has no request for it.
    const end = performance.now() + 3_000 * IDLE_SECONDS;
    while (performance.now() < end) {
      await use();
      expect(await replicas()).toBe(1);
    }
    await eventually(async () => expect(await replicas()).toBe(0), WAIT);
  });
});
