import { X509Certificate } from 'node:crypto';
import { Resolver } from 'node:dns/promises';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../base/clock.ts';
import { TerminalError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import { assignProxyPorts } from '../../gitops/appliers/proxy/ports.ts';
import { openKubernetes } from '../../gitops/kubernetes/client/client.ts';
import { type Delivered, deliverySecret } from '../../gitops/kubernetes/delivery/secrets.ts';
import { GatewayAgent } from '../../gitops/kubernetes/gateway/agent.ts';
import { readPair } from '../../gitops/kubernetes/gateway/certificates.ts';
import { ClusterFeed } from '../../gitops/kubernetes/gateway/cluster.ts';
import { configurationOf, type ServerFile } from '../../gitops/kubernetes/gateway/configuration.ts';
import type { PodEndpoint } from '../../gitops/kubernetes/gateway/peers.ts';
import { Saved } from '../../gitops/kubernetes/gateway/saved.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { type Answerer, ScriptedServer } from '../support/kubernetes/scripted-server.ts';
import { NGINX_SETTINGS } from '../support/proxy/nginx.ts';
import { HOP_SECRET } from '../support/proxy/proxy.ts';
import { endBeforeSignal } from '../support/signal.ts';
import { selfSigned } from '../support/tls/self-signed.ts';
import { startUpstream } from '../support/upstream.ts';

const SERVICE = 'sites/tag-acme-processing';

const deliveries = (port: number, ...more: readonly [string, Delivered][]) =>
  new Map<string, Delivered>([
    ...more,
    [
      'instance',
      {
        kind: 'instance',
        document: {
          version: 1,
          hopSecret: { current: HOP_SECRET },
          trusted: { cloudflare: [], own: [] },
          edge: { scheme: 'https', address: '127.0.0.1', port: 1 },
        },
      },
    ],
    [
      'acme',
      {
        kind: 'site',
        document: {
          version: 1,
          site: 'acme',
          names: [
            {
              kind: 'origin',
              host: 'acme.example.net',
              namespace: 'sites',
              service: 'tag-acme-processing',
              port,
            },
          ],
        },
      },
    ],
  ]);

const QUIET: Log = { info: () => undefined, warn: () => undefined };

/** Answers as an API server that has these Secrets and no other objects. */
function apiServer(secrets: () => readonly object[]): Answerer {
  return (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (searchParams.get('watch') === 'true') response.writeHead(200).write('\n');
    else if (request.method === 'PATCH') request.pipe(response.writeHead(200));
    else {
      const items = pathname.endsWith('/secrets') ? secrets() : [];
      response.writeHead(200).end(JSON.stringify({ metadata: { resourceVersion: '1' }, items }));
    }
  };
}

function stored(name: string, delivered: Delivered) {
  const { labels, ...secret } = deliverySecret(delivered);
  const metadata = { name, namespace: 'gateways', uid: name, resourceVersion: '1', labels };
  return { apiVersion: 'v1', kind: 'Secret', metadata, ...secret };
}

describeWith('nginx', 'a gateway’s agent', () => {
  const stack: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of stack.splice(0).reverse()) await end();
  });

  async function started(
    directory: string,
    endpointsOf: () => readonly PodEndpoint[] | null,
    { log = QUIET, start = async () => undefined }: { log?: Log; start?: () => Promise<void> } = {},
  ) {
    const listen = ['127.0.0.1'];
    const inner = { httpPort: 0, tlsPort: 0, policyPort: 0, statusPort: 0, resolverPort: 0 };
    const ports = await assignProxyPorts(join(directory, 'ports.json'), listen, inner);
    const agent = new GatewayAgent(
      { ...NGINX_SETTINGS, directory, listen, ...ports, frontRanges: null },
      { clock: systemClock, log, endpointsOf, start },
    );
    await agent.open();
    stack.push(() => agent.end(0));
    return Object.assign(agent, ports);
  }

  async function folder(): Promise<string> {
    const directory = await mkdtemp(join(tmpdir(), 'tagyard-gateway-ready-'));
    await chmod(directory, 0o711);
    stack.push(() => rm(directory, { recursive: true }));
    return directory;
  }

  async function kubeconfig(directory: string, { config }: ScriptedServer): Promise<string> {
    const path = join(directory, 'kubeconfig');
    const named = {
      clusters: [{ name: 'test', cluster: { server: config.server.href, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'test', user: { token: 'token' } }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    };
    await writeFile(path, JSON.stringify({ ...named, 'current-context': 'test' }));
    return path;
  }

  /** Resolves with the certificate that is served for a name, in DER. */
  async function servedFor(servername: string, port: number): Promise<Buffer> {
    const socket = connect({ host: '127.0.0.1', port, servername, rejectUnauthorized: false });
    try {
      await once(socket, 'secureConnect');
      return socket.getPeerCertificate().raw;
    } finally {
      socket.destroy();
    }
  }

  test('starts a preview server once for all requests, and counts it as running until it is stopped', async () => {
    const preview = { namespace: 'sites', service: 'tag-acme-preview', port: 8_102 };
    const service = 'sites/tag-acme-preview';
    let starts = 0;
    let fault: Error | null = new TerminalError('403');
    const agent = await started(await folder(), () => [], {
      async start() {
        starts += 1;
        if (fault !== null) throw fault;
      },
    });
    const delivered = deliveries(8_101);
    const name = {
      kind: 'preview',
      host: 'preview.example.net',
      ...preview,
      onDemand: preview.service,
    } as const;
    const document = { version: 1 as const, site: 'preview', names: [name] };
    await agent.deliver(delivered.set('preview', { kind: 'site', document }));
    const resolver = new Resolver({ timeout: 30_000, tries: 1 });
    resolver.setServers([`127.0.0.1:${agent.resolverPort}`]);
    const asked = () => resolver.resolve4('tag-acme-preview.sites.peers').catch(({ code }) => code as string);
    expect(new Set(await Promise.all(Array.from({ length: 20 }, asked)))).toEqual(new Set(['ESERVFAIL']));
    expect([starts, agent.running(service)]).toEqual([1, null]);
    fault = null;
    // For five seconds after the failed start, all requests get its error.
    const served = eventually(async () => expect(await asked()).toEqual(Array(3).fill('127.0.0.1')));
    await eventually(() => expect([starts, agent.running(service)]).toEqual([2, preview.service]));
    agent.stopped(service);
    expect(agent.running(service)).toBeNull();
    agent.list(service, [{ address: '127.0.0.1', port: preview.port, state: 'ready' }]);
    await served;
    expect(agent.running(service)).toBe(preview.service);
  });

  test('ends even if nginx has ended by itself just before the signal', async () => {
    const directory = await folder();
    const agent = await started(directory, () => []);
    await agent.deliver(deliveries(1));
    const restore = endBeforeSignal(directory);
    stack.push(async () => restore());
    await agent.end(0);
    expect(await agent.nginx.daemon.isRunning()).toBe(false);
  });

  test('is not ready before the API server has listed the pods, unless it knows pods from before a restart', async () => {
    const directory = await folder();
    const pod = await startUpstream({ address: '127.0.0.1' });
    stack.push(() => pod.close());

    let listed: PodEndpoint[] | null = null;
    const first = await started(directory, () => listed);
    await first.deliver(deliveries(pod.port));
    expect(await first.obstacles()).toEqual(['the API server has not listed the pods yet']);
    listed = [{ address: '127.0.0.1', port: pod.port, state: 'ready' }];
    first.list(SERVICE, listed);
    expect(await first.obstacles()).toEqual([`no pod of ${SERVICE} is known to accept connections`]);
    await eventually(async () => expect(await first.obstacles()).toEqual([]));
    await first.end(0);

    const second = await started(directory, () => null);
    await eventually(async () => expect(await second.obstacles()).toEqual([]));
  });

  test('serves those names of a certificate that nginx can serve, and reports a Secret whose names it can’t serve', async () => {
    const agent = await started(await folder(), () => []);
    const good = await selfSigned(['*.example.net', '*.dev_1.example.net']);
    const delivered = deliveries(1, ['good', good]);
    expect(await agent.deliver(delivered)).toEqual(new Map());
    const { raw } = new X509Certificate(good.cert);
    expect(await servedFor('acme.example.net', agent.tlsPort)).toEqual(raw);

    const configuration = configurationOf(delivered);
    const pair = readPair(good);
    const bad: ServerFile = { kind: 'platform', secret: 'bad', names: ['*.dev_1.example.net'], pair };
    const files = new Map([...configuration.files, ['_.bad.conf', bad]]);
    const { refused } = await agent.nginx.serve({ ...configuration, files });
    expect([...refused]).toEqual([['bad', expect.stringMatching(/host name or \*\.domain/)]]);
    expect((await agent.nginx.serve(configuration)).refused.size).toBe(0);
    expect(await servedFor('acme.example.net', agent.tlsPort)).toEqual(raw);
  });

  test('serves a certificate that nginx accepts, not a weak one that expires later, and reports the weak one', async () => {
    const agent = await started(await folder(), () => []);
    const good = await selfSigned(['*.example.net']);
    const weak = await selfSigned(['*.example.net'], { rsaBits: 1024, days: 365 });
    const faults = await agent.deliver(deliveries(1, ['good', good], ['weak', weak]));
    expect([...faults]).toEqual([['weak', expect.stringContaining('key too small')]]);
    const { raw } = new X509Certificate(good.cert);
    expect(await servedFor('acme.example.net', agent.tlsPort)).toEqual(raw);
  });

  test('continues to serve a Secret that it can no longer read, also after a restart', async () => {
    const directory = await folder();
    let secrets = [...deliveries(1)].map(([name, delivered]) => stored(name, delivered));
    const server = await ScriptedServer.start(apiServer(() => secrets));
    stack.push(() => server[Symbol.asyncDispose]());
    const client = await openKubernetes({ kubeconfig: await kubeconfig(directory, server) });
    stack.push(() => client.close());
    const warned = vi.fn();
    const log: Log = { info: () => undefined, warn: warned };
    const followed = async () => {
      const agent = await started(directory, () => [], { log });
      const pod = { name: 'gateway-1' };
      const place = { client, namespace: 'gateways', instance: 'test', pod };
      const feed = new ClusterFeed({ ...place, idleMs: 60_000, clock: systemClock, log });
      stack.push(() => feed.end());
      feed.follow(agent);
      return { agent, feed };
    };
    const saved = async () => [...(await new Saved(directory).deliveries()).keys()];

    const first = await followed();
    await eventually(async () => expect(await saved()).toEqual(['acme', 'instance']));
    await first.feed.end();
    await first.agent.end(0);

    secrets = secrets.map((secret) =>
      secret.metadata.name === 'acme' ? { ...secret, data: { document: btoa('{"version":2}') } } : secret,
    );
    const second = await followed();
    await eventually(() =>
      expect(warned).toHaveBeenCalledWith(
        { refused: { acme: expect.stringMatching(/update the gateway first/) } },
        'some of what was delivered is not served',
      ),
    );
    expect([...second.agent.services]).toEqual([SERVICE]);
    expect(await saved()).toEqual(['acme', 'instance']);
  });
});
