import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runningMaster, workersOf } from '../../gitops/appliers/proxy/nginx/process.ts';
import { deliveryDigest, readReport } from '../../gitops/delivery/report.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage, SITES } from '../support/gateway/stage.ts';
import { ask } from '../support/proxy/proxy.ts';
import { startUpstream } from '../support/upstream.ts';

const HOST = 'acme-origin.example.net';

describeWith(['kubernetes', 'root', 'nginx'], 'a gateway beside a cluster', () => {
  let stage: GatewayStage;
  let gateway: GatewayProcess;
  let pod: Awaited<ReturnType<typeof startUpstream>>;
  let address: string;

  beforeAll(async () => {
    stage = await GatewayStage.start();
    address = await stage.podAddress(1);
    pod = await startUpstream({ address, name: 'first' });
    await stage.deliverInstance();
    await stage.deliverCertificate('tls-platform', '*.example.net');
    await stage.deliverSite('acme', [
      { kind: 'origin', host: HOST, namespace: SITES, service: 'tag-acme-processing', port: pod.port },
    ]);
    await stage.list('tag-acme-processing', pod.port, [{ address }]);
    gateway = await stage.gateway('gateway-1');
    await gateway.start();
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await pod?.close();
  });

  const workers = async () => await workersOf((await runningMaster(gateway.directory)) ?? 0);

  test('serves a site under the wildcard’s certificate', async () => {
    const ca = await readFile(stage.ca.caFile, 'utf8');
    const answer = await ask(gateway.endpoint, { host: HOST, path: '/g/collect?v=2', ca });
    expect([answer.status, answer.headers['x-upstream']]).toEqual([200, 'first']);
  });

  test('serves a new name, another port and a removed name without a reload', async () => {
    const before = await workers();
    const host = 'new-origin.example.net';
    const second = await startUpstream({ address, name: 'second' });
    await stage.list('tag-new-processing', second.port, [{ address }]);
    const name = {
      kind: 'origin',
      host,
      namespace: SITES,
      service: 'tag-new-processing',
      port: second.port,
    } as const;
    await stage.deliverSite('new', [name]);
    await eventually(async () => {
      expect((await ask(gateway.endpoint, { host })).headers['x-upstream']).toBe('second');
    });
    await stage.withdraw('site-new');
    await eventually(
      async () => await expect(ask(gateway.endpoint, { host })).rejects.toThrow(/hang up|reset/i),
    );
    expect(await workers()).toEqual(before);
    expect(before).not.toEqual([]);
    await second.close();
  });

  test('reports what it serves in a Lease', async () => {
    await eventually(async () => {
      const { items } = await stage.client.list(
        { kind: 'Secret', namespace: GATEWAYS, labels: 'tagyard/gateway' },
        AbortSignal.timeout(10_000),
      );
      const lease = await stage.client.get(
        { kind: 'Lease', namespace: GATEWAYS, name: gateway.name },
        AbortSignal.timeout(10_000),
      );
      expect(lease && readReport(lease)).toMatchObject({
        delivered: deliveryDigest(items),
        ready: true,
        refused: {},
        generation: expect.stringMatching(/^[0-9]+-/),
      });
    });
  });
});
