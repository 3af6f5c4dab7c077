import { afterAll, beforeAll, expect, test } from 'vitest';
import { runningMaster, workersOf } from '../../gitops/appliers/proxy/nginx/process.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { ManySites, originOf } from '../support/gateway/many-sites.ts';
import { SITES } from '../support/gateway/stage.ts';
import { ask } from '../support/proxy/proxy.ts';

const IDLE_SECONDS = 3;
const WAIT = { timeoutMs: 60_000 };

describeWith(['kubernetes', 'root', 'nginx'], 'two gateways with many sites', () => {
  let sites: ManySites;

  const workers = () =>
    Promise.all(
      sites.gateways.map(async ({ directory }) => await workersOf((await runningMaster(directory)) ?? 0)),
    );
  const reaches = (site: string, upstream: string) =>
    eventually(() => sites.expectReaches(site, upstream), WAIT);

  beforeAll(async () => {
    sites = await ManySites.start({ PREVIEW_IDLE_SECONDS: String(IDLE_SECONDS) });
  }, 120_000);
  afterAll(() => sites?.[Symbol.asyncDispose]());

  test('apply a site’s change, addition and removal without a reload', async () => {
    const [first, second] = sites.upstreams;
    await reaches('site-0', 'first');
    const before = await workers();
    expect(before.every((ids) => ids.length > 0)).toBe(true);
    await sites.list('site-0', second.port);
    await sites.deliver('site-0', second.port, true);
    await reaches('site-0', 'second');
    await sites.list('new', first.port);
    await sites.deliver('new', first.port);
    await reaches('new', 'first');
    await sites.stage.withdraw('site-new');
    for (const { endpoint } of sites.gateways) {
      await eventually(async () => {
        await expect(ask(endpoint, { host: originOf('new') })).rejects.toThrow(/hang up|reset/i);
      }, WAIT);
    }
    expect(await workers()).toEqual(before);
    // A site's first custom domain is a new server in nginx: it needs a reload.
    await sites.deliver('site-999', first.port, true);
    await eventually(async () => {
      const after = await workers();
      for (const [index, ids] of after.entries()) expect(ids).not.toEqual(before[index]);
    }, WAIT);
  });

  test('start a preview server for its first request, and stop it when neither gateway has a request for it', async () => {
    const name = 'tag-demand-preview';
    const [{ port }] = sites.upstreams;
    const host = 'demand-preview.example.net';
    const labels = { app: name };
    await sites.stage.cluster.create({
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
        await sites.stage.cluster.kubectl(
          ...['get', 'deployment', name, '--namespace', SITES, '--output', 'jsonpath={.spec.replicas}'],
        ),
      );
    const pods = { namespace: SITES, service: name, port };
    await sites.stage.deliverSite('demand', [{ kind: 'preview', host, ...pods, onDemand: name }]);
    const [one] = sites.gateways;
    const use = () => ask(one.endpoint, { host, timeoutMs: 60_000 });
    // Once the gateways know the name, the request is held until the pod is listed.
    const answered = eventually(use, WAIT);
    await eventually(async () => expect(await replicas()).toBe(1), WAIT);
    await sites.stage.list(name, port, [{ address: sites.address }]);
    expect((await answered).headers['x-upstream']).toBe('first');
    // The other gateway has no request for it, and must not stop it.
    const end = performance.now() + 3_000 * IDLE_SECONDS;
    while (performance.now() < end) {
      await use();
      expect(await replicas()).toBe(1);
    }
    await eventually(async () => expect(await replicas()).toBe(0), WAIT);
  });
});
