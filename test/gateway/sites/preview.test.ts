import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ManifestInput } from '../../../sites/manifest/schema.ts';
import { EMULATOR_ZONE } from '../../support/cloudflare/emulator.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage } from '../../support/gateway/stage.ts';
import { importKeptServer } from '../../support/kubernetes/kept-server.ts';
import { TwoHosts } from '../../support/kubernetes/two-hosts.ts';
import { manifestInput } from '../../support/manifest.ts';
import { ask } from '../../support/proxy/proxy.ts';

const HOST = 'tag-2';
/** A registry where nothing answers: a node can run images of it only as long as it has them. */
const REGISTRY = '127.0.0.1:9/tag-server';
const NAMES = ['image', 'quota', 'node'] as const;
type Name = (typeof NAMES)[number];
const WAIT = { timeoutMs: 180_000, intervalMs: 500 };
/** The cause that the status of each site names. */
const CAUSES: Readonly<Record<Name, RegExp>> = {
  image: /the image can’t be pulled: .*127\.0\.0\.1:9/s,
  quota: /a quota of the namespace is used up: .*exceeded quota: theirs/,
  node: /no node takes a pod: .*unschedulable/,
};

describeWith(['kubernetes', 'root', 'nginx'], 'a preview server on demand that can’t start', () => {
  let stage: GatewayStage;
  let gateway: GatewayProcess;
  let hosts: TwoHosts;
  let file: string;
  let startCluster: () => Promise<void>;
  let manifests: Readonly<Record<Name, ManifestInput>>;

  beforeAll(async () => {
    stage = await GatewayStage.start({ nodes: 1 });
    const { cluster } = stage;
    hosts = await TwoHosts.open(await importKeptServer(cluster), {});
    file = join(cluster.folder, 'kept-server.tar');
    const removable = `${REGISTRY}@${await cluster.importByDigest(file, REGISTRY)}`;
    const tls = join(hosts.folder, 'tls');
    await mkdir(tls);
    const pair = await stage.ca.pathsFor(`*.${EMULATOR_ZONE}`);
    await cp(pair.cert, join(tls, `_.${EMULATOR_ZONE}.pem`));
    await cp(pair.key, join(tls, `_.${EMULATOR_ZONE}.key`));
    startCluster = () =>
      hosts.startCluster({
        KUBECONFIG: cluster.kubeconfig,
        KUBERNETES_GATEWAY_NAMESPACE: GATEWAYS,
        TLS_DIR: tls,
      });
    await startCluster();
    const { image } = hosts.manifest;
    const site = (name: Name, number: number) =>
      hosts.configured({
        ...manifestInput(name, number, {
          host: HOST,
          client: `7c9e6679-7425-40de-944b-e07fc1f90be${number}`,
        }),
        image: name === 'image' ? removable : image,
        resources: { processing: { replicas: { min: 1, max: 2 } }, preview: { onDemand: true } },
      });
    manifests = {
      image: await site('image', 0),
      quota: await site('quota', 1),
      node: await site('node', 2),
    };
    for (const name of NAMES) await hosts.commit(manifests[name], `Add the site ${name}`);
    gateway = await stage.gateway('gateway-1', { PREVIEW_IDLE_SECONDS: '10' });
    await gateway.start();
    for (const name of NAMES) await eventually(() => expectServed(name), WAIT);
  });
  afterAll(async () => {
    await hosts?.[Symbol.asyncDispose]();
    await stage?.[Symbol.asyncDispose]();
  });

  const shown = async (name: Name) => {
    const { ready, reason, conditions = [] } = (await hosts.shown(HOST, name)) ?? {};
    return { ready, reason, conditions };
  };
  const namespace = (name: Name) => `tagyard-test-${manifests[name].client}`;
  const get = (name: Name, what: string, path: string) =>
    stage.cluster.kubectl('get', what, '--namespace', namespace(name), `--output=jsonpath=${path}`);
  const askPreview = (name: Name) =>
    ask(gateway.endpoint, { host: manifests[name].hostnames.preview, timeoutMs: 70_000 });
  /** The processing server answers, and the site is ready, with exactly these conditions. */
  async function expectServed(name: Name, conditions: readonly object[] = []) {
    expect((await ask(gateway.endpoint, { host: manifests[name].hostnames.origin })).status).toBe(200);
    expect(await shown(name)).toEqual({ ready: true, reason: 'Ready', conditions });
  }
  const named = (cause: RegExp | string) => [
    {
      condition: 'preview_failed',
      message: expect.stringMatching(
        RegExp(
          `^the preview server didn’t start for its last request: ${RegExp(cause).source}.*the next request`,
          's',
        ),
      ),
    },
  ];

  test('is named in its site’s status with the cause, and the site is ready and served', async () => {
    await stage.cluster.nodes[0]?.removeImages(REGISTRY);
    const quota = ['create', 'quota', 'theirs', '--hard=pods=1', '--namespace', namespace('quota')];
    await stage.cluster.kubectl(...quota);
    await eventually(async () => expect(await get('quota', 'quota/theirs', '{.status.used.pods}')).toBe('1'));
    const asked = [askPreview('image'), askPreview('quota')];
    await eventually(async () => {
      const pods = await get('image', 'pods', '{.items[*].spec.nodeName}');
      expect(pods.split(' ')).toHaveLength(2);
    }, WAIT);
    // The last site's preview pod is created only after the node is cordoned, so no node takes it.
    await stage.cluster.kubectl('cordon', stage.cluster.nodes[0]?.name ?? '');
    asked.push(askPreview('node'));
    for (const { status } of await Promise.all(asked)) expect(status).toBeGreaterThanOrEqual(500);
    for (const name of NAMES) {
      await eventually(() => expectServed(name, named(CAUSES[name])), WAIT);
    }
  });

  test('stays named after it was stopped, and after the provisioner’s restart', async () => {
    for (const name of NAMES) {
      const replicas = () => get(name, `deployment/tag-${name}-preview`, '{.spec.replicas}');
      await eventually(async () => expect(await replicas()).toBe('0'), WAIT);
      await expectServed(name, named(CAUSES[name]));
    }
    await hosts.killProvisioner(HOST);
    await startCluster();
    // The cause is gone with the pod.
    for (const name of NAMES) {
      await eventually(() => expectServed(name, named('no pod was ready within 55 seconds')), WAIT);
    }
  });

  test('isn’t named any more once it starts', async () => {
    await stage.cluster.kubectl('uncordon', stage.cluster.nodes[0]?.name ?? '');
    await stage.cluster.importByDigest(file, REGISTRY);
    for (const name of ['image', 'node'] as const) {
      expect((await askPreview(name)).status).toBe(200);
      await eventually(() => expectServed(name), WAIT);
    }
  });

  test('isn’t named any more once a commit has replaced it', async () => {
    await expectServed('quota', named('no pod was ready'));
    const { resources } = manifests.quota;
    const preview = { ...resources?.preview, memory: '300m' };
    await hosts.commit({ ...manifests.quota, resources: { ...resources, preview } }, 'Change the preview');
    await eventually(() => expectServed('quota'), WAIT);
  });
});
