import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { runningMaster, workersOf } from '../../gitops/appliers/proxy/nginx/process.ts';
import { deliveryDigest, readReport } from '../../gitops/kubernetes/delivery/report.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { GATEWAYS, type GatewayProcess, GatewayStage, SITES } from '../support/gateway/stage.ts';
import { ask, HOP_SECRET } from '../support/proxy/proxy.ts';
import { startLoad } from '../support/steady-load.ts';
import { type Seen, startUpstream } from '../support/upstream.ts';

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

  test('serves a new name on another port, and drops a removed name, without a reload', async () => {
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

  const answers = async (host: string, expected: { status?: number; upstream?: string } = {}) => {
    const { status, headers } = await ask(gateway.endpoint, { host });
    expect(status).toBe(expected.status ?? 200);
    if (expected.upstream !== undefined) expect(headers['x-upstream']).toBe(expected.upstream);
  };
  const cleanups: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
  });
  const upstream = async (options: Parameters<typeof startUpstream>[0]) => {
    const started = await startUpstream({ address, ...options });
    cleanups.push(() => started.close());
    return started;
  };

  test('when a pod ends without notice, loses no request that can be sent again, and uses the pod again after its return', async () => {
    const other = await stage.podAddress(2);
    const [one, two] = [
      await upstream({ name: 'one' }),
      await startUpstream({ address: other, name: 'two' }),
    ];
    // Both listen on one port, as the pods of a site do.
    await two.close();
    let second = await startUpstream({ address: other, port: one.port, name: 'two' });
    const host = await stage.serve('pair', one.port, [address, other]);
    await eventually(() => answers(host, { upstream: 'two' }));
    const load = startLoad(gateway.endpoint, host, { perSecond: 60 });
    await eventually(() => expect(second.seen.length).toBeGreaterThan(5));
    const onItsWay = load.waiting();
    const from = load.sent();
    await second.close();
    const to = load.sent();
    const seen = one.seen.length;
    await eventually(() => expect(one.seen.length).toBeGreaterThan(seen + 150));
    second = await startUpstream({ address: other, port: one.port, name: 'two' });
    cleanups.push(() => second.close());
    await eventually(() => expect(second.seen.length).toBeGreaterThan(5));
    const { sent, failures } = await load.end();
    // A request with a body (every second one) that was on its way when the pod ended is not sent again, and may fail.
    const unexpected = failures.filter((text) => {
      const number = Number(/^request (\d+)/.exec(text)?.[1]);
      return number % 2 === 1 || !(onItsWay.has(number) || (number >= from && number < to));
    });
    expect(unexpected).toEqual([]);
    expect(sent).toBeGreaterThan(100);
  });

  test('sends a body to another pod if the first one can’t be reached', async () => {
    const only = await upstream({ name: 'only' });
    // An address in the cluster's network that no machine has.
    const lost = address.replace(/\d+$/, '250');
    const host = await stage.serve('lost', only.port, [address, lost]);
    await eventually(() => answers(host));
    const before = only.seen.length;
    const bodies = await Promise.all(
      Array.from({ length: 12 }, (_, number) =>
        ask(gateway.endpoint, { host, method: 'POST', path: `/mp?n=${number}`, body: 'b'.repeat(5_000) }),
      ),
    );
    expect(bodies.map(({ status }) => status)).toEqual(Array(12).fill(200));
    const posted = only.seen.slice(before).filter(({ method }) => method === 'POST');
    expect(posted.map(({ url }) => url).sort()).toEqual([...new Set(posted.map(({ url }) => url))].sort());
    expect(posted).toHaveLength(12);
    expect(posted.every(({ bodyBytes }) => bodyBytes === 5_000)).toBe(true);
  });

  test('keeps the last known pods of a Service that has none any more, but only as long as they accept connections', async () => {
    const alive = await startUpstream({ address, name: 'alive' });
    const host = await stage.serve('static', alive.port, [address]);
    await eventually(() => answers(host, { upstream: 'alive' }));
    await stage.list('tag-static-processing', alive.port, []);
    // The marker has another address, because the gateway forgets a kept pod whose address another Service lists.
    const marker = await upstream({ address: await stage.podAddress(2), name: 'marker' });
    const other = await stage.serve('marker', marker.port, [await stage.podAddress(2)]);
    // Once this later change has arrived, the empty list has, too.
    await eventually(() => answers(other));
    const seen = alive.seen.length;
    const load = startLoad(gateway.endpoint, host, { perSecond: 40 });
    await eventually(() => expect(alive.seen.length).toBeGreaterThan(seen + 120));
    expect((await load.end()).failures).toEqual([]);
    await alive.close();
    await eventually(() => answers(host, { status: 502 }));
    const back = await upstream({ port: alive.port, name: 'back' });
    await eventually(async () => {
      // The gateway has forgotten the unlisted pod, so it uses the pod only once the API server lists it again.
      await stage.list('tag-static-processing', back.port, [{ address }]);
      await answers(host, { upstream: 'back' });
    });
  });

  test('accepts both hop secrets while one replaces the other, and loses no request', async () => {
    const next = 'next-secret-of-the-tests-0123456789';
    const forwarded = async (secret: string) => {
      const headers = { 'x-tagyard-hop-secret': secret, 'x-tagyard-visitor': '198.51.100.7' };
      const { body } = await ask(gateway.endpoint, { host: HOST, headers });
      return (JSON.parse(body) as Seen).headers['x-forwarded-for']; // the upstream's own answer
    };
    const load = startLoad(gateway.endpoint, HOST, { perSecond: 40 });
    expect([await forwarded(HOP_SECRET), await forwarded(next)]).toEqual(['198.51.100.7', '127.0.0.1']);
    await stage.deliverInstance({ hopSecret: { current: next, previous: HOP_SECRET } });
    await eventually(async () => expect(await forwarded(next)).toBe('198.51.100.7'));
    expect(await forwarded(HOP_SECRET)).toBe('198.51.100.7');
    await stage.deliverInstance({ hopSecret: { current: next } });
    await eventually(async () => expect(await forwarded(HOP_SECRET)).toBe('127.0.0.1'));
    expect(await forwarded(next)).toBe('198.51.100.7');
    await stage.deliverInstance();
    await eventually(async () => expect(await forwarded(HOP_SECRET)).toBe('198.51.100.7'));
    expect((await load.end()).failures).toEqual([]);
  });

  test('continues to serve the last good content of a Secret it can’t read, and says so in the Lease', async () => {
    const steady = await upstream({ name: 'steady' });
    const host = await stage.serve('steady', steady.port, [address]);
    await eventually(() => answers(host));
    await stage.cluster.kubectl(
      ...['patch', 'secret', 'site-steady', '--namespace', GATEWAYS, '--type=merge'],
      ...['--patch', JSON.stringify({ data: { document: Buffer.from('{"version":9}').toString('base64') } })],
    );
    await eventually(async () => {
      const address = { kind: 'Lease', namespace: GATEWAYS, name: gateway.name } as const;
      const lease = await stage.client.get(address, AbortSignal.timeout(10_000));
      expect(lease && readReport(lease)?.refused).toEqual({
        'site-steady': expect.stringContaining('update the gateway first'),
      });
    });
    await answers(host, { upstream: 'steady' });
  });

  test('leads a custom domain to the edge, with a certificate of its own, and answers challenges for it', async () => {
    const edge = await upstream({ address: '127.0.0.1', name: 'edge' });
    const challengeKey = 'k'.repeat(43);
    await stage.deliverInstance({
      edge: { scheme: 'http', address: '127.0.0.1', port: edge.port },
      challengeKey,
    });
    const host = 'tags.shop.example';
    await stage.deliverSite('shop', [{ kind: 'custom', host, edgeHost: 'shop.example.net' }]);
    const challenge = { host, servername: null, path: '/.well-known/acme-challenge/token-1' };
    await eventually(async () =>
      expect((await ask(gateway.endpoint, challenge)).body.trim()).toBe(`token-1.${challengeKey}`),
    );
    await expect(ask(gateway.endpoint, { host })).rejects.toThrow(/alert|handshake|reset|disconnected/i);
    await stage.deliverCertificate('tls-shop', host);
    const ca = await readFile(stage.ca.caFile, 'utf8');
    await eventually(() => ask(gateway.endpoint, { host, ca }));
    const { headers } = edge.seen.at(-1) ?? { headers: {} };
    expect(headers).toMatchObject({ host: 'shop.example.net', 'x-tagyard-hop-secret': HOP_SECRET });
    // Without TLS, a name that leads to pods answers challenges, too, and nothing else.
    expect((await ask(gateway.endpoint, { ...challenge, host: HOST })).body.trim()).toBe(
      `token-1.${challengeKey}`,
    );
    await expect(ask(gateway.endpoint, { ...challenge, host: HOST, path: '/' })).rejects.toThrow(
      /hang up|reset/i,
    );
    await expect(ask(gateway.endpoint, { ...challenge, host: 'no.example' })).rejects.toThrow(
      /hang up|reset/i,
    );
    await Promise.all(['site-shop', 'tls-shop'].map((name) => stage.withdraw(name)));
    await stage.deliverInstance();
  });

  test('starts a preview server on demand for the first request, and holds that request until a pod is ready', async () => {
    const host = 'acme-preview.example.net';
    const name = 'tag-acme-preview';
    await stage.cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name, namespace: SITES },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: { containers: [{ name: 'preview', image: 'example.test/none:1' }] },
        },
      },
    });
    const preview = await upstream({ name: 'preview' });
    const pods = { namespace: SITES, service: name, port: preview.port, onDemand: name };
    await stage.deliverSite('demand', [{ kind: 'preview', host, ...pods }]);
    const asked = eventually(() => answers(host, { upstream: 'preview' }));
    await eventually(async () => {
      const replicas = await stage.cluster.kubectl(
        ...['get', 'deployment', name, '--namespace', SITES, '--output', 'jsonpath={.spec.replicas}'],
      );
      expect(replicas).toBe('1');
    });
    expect(preview.seen).toEqual([]);
    await stage.list(name, preview.port, [{ address }]);
    await asked;
    await stage.withdraw('site-demand');
  });

  test('loses no request after its agent was killed and the next agent has taken over nginx', async () => {
    const before = await runningMaster(gateway.directory);
    // The agent is nginx's resolver, whose answers last less than a second: the load begins when the next agent runs.
    await gateway.end('SIGKILL');
    await gateway.start();
    const load = startLoad(gateway.endpoint, HOST, { perSecond: 40 });
    const seen = pod.seen.length;
    await eventually(() => expect(pod.seen.length).toBeGreaterThan(seen + 40));
    expect((await load.end()).failures).toEqual([]);
    expect(await runningMaster(gateway.directory)).toBe(before);
  });

  test('serves the last generation after a restart while the API server is away', async () => {
    await stage.cluster.restartApiServer(async () => {
      await gateway.kill();
      await expect(ask(gateway.endpoint, { host: HOST })).rejects.toThrow(/ECONNREFUSED/);
      await gateway.start();
      await answers(HOST, { upstream: 'first' });
    });
    // The gateway follows the API server again.
    const later = await upstream({ name: 'later' });
    const host = await stage.serve('later', later.port, [address]);
    await eventually(() => answers(host, { upstream: 'later' }), { timeoutMs: 60_000 });
  });

  test('answers the requests that it has taken before it ends, and is not ready meanwhile', async () => {
    const held = Promise.withResolvers<void>();
    const slow = await upstream({
      handle(request, response) {
        if (request.url !== '/held') return false;
        void held.promise.then(() => response.end('held'));
        return true;
      },
    });
    const host = await stage.serve('slow', slow.port, [address]);
    await eventually(() => answers(host));
    const asked = ask(gateway.endpoint, { host, path: '/held' });
    await eventually(async () => expect((await workers()).length).toBeGreaterThan(0));
    expect((await gateway.readiness('/serving')).status).toBe(200);
    const ended = gateway.end('SIGTERM');
    await eventually(async () => {
      expect(await gateway.readiness()).toMatchObject({ status: 503, text: 'the gateway ends\n' });
      // With this status, a load balancer keeps its open connections.
      expect(await gateway.readiness('/serving')).toMatchObject({ status: 404, text: 'the gateway ends\n' });
      await expect(ask(gateway.endpoint, { host })).rejects.toThrow(/ECONNREFUSED/);
    });
    held.resolve();
    expect((await asked).body).toBe('held');
    await ended;
    expect(await runningMaster(gateway.directory)).toBeNull();
    await gateway.start();
    await answers(HOST);
  });
});
