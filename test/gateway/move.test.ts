import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EMULATOR_ZONE } from '../support/cloudflare/emulator.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { renderLoad, startEdgeLoad } from '../support/gateway/edge-load.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage } from '../support/gateway/stage.ts';
import { importKeptServer } from '../support/kubernetes/kept-server.ts';
import { type Host, TwoHosts } from '../support/kubernetes/two-hosts.ts';

const PER_SECOND = 20;
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };

describeWith(['kubernetes', 'root', 'nginx'], 'a site that moves to a cluster under load', () => {
  let stage: GatewayStage;
  let gateway: GatewayProcess;
  let hosts: TwoHosts;
  let machinePort: number;
  let startCluster: () => Promise<void>;

  beforeAll(async () => {
    stage = await GatewayStage.start({ nodes: 1 });
    // Longer than the edge of this test keeps an address.
    hosts = await TwoHosts.open(await importKeptServer(stage.cluster), { DRAIN_SECONDS: '2' });
    const tls = join(hosts.folder, 'tls');
    await mkdir(tls);
    const pair = await stage.ca.pathsFor(`*.${EMULATOR_ZONE}`);
    await cp(pair.cert, join(tls, `_.${EMULATOR_ZONE}.pem`));
    await cp(pair.key, join(tls, `_.${EMULATOR_ZONE}.key`));
    machinePort = await hosts.startMachine();
    startCluster = () =>
      hosts.startCluster({
        KUBECONFIG: stage.cluster.kubeconfig,
        KUBERNETES_GATEWAY_NAMESPACE: GATEWAYS,
        TLS_DIR: tls,
      });
    await startCluster();
    await hosts.commitOthers();
    gateway = await stage.gateway('gateway-1');
    await gateway.start();
  });
  afterAll(async () => {
    await hosts?.[Symbol.asyncDispose]();
    await stage?.[Symbol.asyncDispose]();
  });

  const currentHost = async () => hosts.hostIn(await hosts.records(), 'origin');
  const isReadyOn = (host: Host) => eventually(() => hosts.expectReadyOn(host, ['origin']), WAIT);

  /** Sends requests to where the name leads, as the edge does, which keeps an address for up to a second. */
  async function underLoad(work: (isSent: (seconds: number) => Promise<void>) => Promise<unknown>) {
    let known: Host | undefined = await currentHost();
    const seen = new Set([known]);
    let isDone = false;
    const following = eventually(
      async () => {
        known = await currentHost();
        seen.add(known);
        if (!isDone) throw new Error('the work isn’t done');
      },
      { timeoutMs: 600_000, intervalMs: 200 },
    );
    const { origin } = hosts.manifest.hostnames;
    const load = startEdgeLoad(
      () => {
        const port = known === 'tag-1' ? machinePort : gateway.endpoint.tlsPort;
        return { address: '127.0.0.1', port, servername: origin };
      },
      origin,
      PER_SECOND,
    );
    try {
      await work((seconds) => {
        const from = load.now();
        return eventually(() => expect(load.now() - from).toBeGreaterThan(seconds), WAIT);
      });
    } finally {
      isDone = true;
      await following;
      await load.end();
    }
    const report = await load.end();
    process.stdout.write(`${renderLoad(report)}\n`);
    return { ...report, seen: [...seen] };
  }

  test('is moved there and back, and no request fails', async () => {
    await hosts.moveTo('tag-1');
    await isReadyOn('tag-1');
    for (const [from, to] of [
      ['tag-1', 'tag-2'],
      ['tag-2', 'tag-1'],
    ] as const) {
      const { failures, sent, seen } = await underLoad(async () => {
        await hosts.moveTo(to);
        await isReadyOn(to);
        await eventually(async () => {
          expect((await hosts.shown(from))?.reason ?? 'Removed').toBe('Removed');
        }, WAIT);
      });
      expect(failures).toEqual([]);
      expect(sent).toBeGreaterThan(PER_SECOND);
      expect(seen).toHaveLength(2);
    }
  });

  test('is served on when the provisioner ends without notice, and after its return', async () => {
    await hosts.moveTo('tag-2');
    await isReadyOn('tag-2');
    const { failures, sent } = await underLoad(async (isSent) => {
      await hosts.killProvisioner('tag-2');
      await isSent(3);
      await startCluster();
      await isReadyOn('tag-2');
    });
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(PER_SECOND);
  });
});
