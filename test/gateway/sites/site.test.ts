import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { generateIdentity, identityToRecipient } from 'age-encryption';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { z } from 'zod';
import { freePort } from '../../../base/free-port.ts';
import { ARRIVAL_PATH } from '../../../gitops/appliers/proxy/policy.ts';
import { ensureLocalCa, type LocalCa } from '../../../sites/local/local-ca.ts';
import { initSitesRepo } from '../../../sites/repo/mirror.ts';
import { EMULATOR_ZONE, startEmulator, type TestEmulator } from '../../support/cloudflare/emulator.ts';
import { describeWith } from '../../support/components.ts';
import { startKnot } from '../../support/dns/knot.ts';
import { startEdgeAnswers } from '../../support/edge-answers.ts';
import { eventually } from '../../support/eventually.ts';
import { gatewayApiDefinitions } from '../../support/gateway/api-definitions.ts';
import { writePartImage } from '../../support/gateway/image.ts';
import { callerAs } from '../../support/kubernetes/call-as.ts';
import { CHART, helm, renderedChart, valueFlags } from '../../support/kubernetes/chart.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { ProvisionerProcess } from '../../support/kubernetes/provisioner.ts';
import { importTagServer } from '../../support/kubernetes/sites.ts';
import { creation, SECRET, World } from '../../support/management/world.ts';
import { startPebble } from '../../support/pebble.ts';
import { ask } from '../../support/proxy/proxy.ts';
import { startUpstream } from '../../support/upstream.ts';

/** The host for which the API has ports. */
const HOST = 'tag-1';
const GATEWAYS = 'tagyard-gateway';
const IMAGE = 'gateway.test/gateway';
const PORTS = { http: 30_080, https: 30_443, health: 30_081 };
const FALLBACK_PORTS = { https: 31_443, health: 31_081 };
/** The hop secret with which `ProvisionerProcess` starts the provisioner. */
const HOP_SECRET = 'a-hop-secret-of-a-test';
const NEXT_SECRET = 'another-hop-secret-of-a-test';
const CUSTOM = 'tags.acme.example';
const VISITOR = '198.51.100.7';
const reported = z.object({ certificates: z.array(z.looseObject({ name: z.string() })) });
const health = z.object({ checks: z.array(z.looseObject({ name: z.string() })) });
const processing = z.object({
  spec: z.object({
    template: z.object({
      metadata: z.looseObject({}),
      spec: z.looseObject({ containers: z.array(z.looseObject({})) }),
    }),
  }),
  status: z.looseObject({
    updatedReplicas: z.number().default(0),
    availableReplicas: z.number().default(0),
  }),
});
const WAIT = { timeoutMs: 180_000, intervalMs: 200 };

/** The API, the provisioner as a process, and a real cluster with the gateway as the chart installs it. */
describeWith(
  ['kubernetes', 'root', 'nginx', 'docker', 'knot', 'pebble'],
  'a site behind the gateway of a cluster',
  () => {
    let cluster: Cluster;
    let emulator: TestEmulator;
    let provisioner: ProvisionerProcess;
    let world: World;
    let edge: Awaited<ReturnType<typeof startUpstream>>;
    let answers: Awaited<ReturnType<typeof startEdgeAnswers>>;
    let ca: LocalCa;
    let folder: string;
    let id: string;
    let client: string;
    let gatewayDigest: string;
    let site: string;
    let hostnames: { edge: string; origin: string; preview: string };
    let values: object;
    let startProvisioner: (env?: NodeJS.ProcessEnv) => Promise<ProvisionerProcess>;

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'tagyard-gateway-site-'));
      const image = join(folder, 'gateway.tar');
      [cluster, emulator] = await Promise.all([
        Cluster.start({ nodes: 2 }),
        startEmulator(),
        writePartImage('gateway', image, folder),
      ]);
      const tagServer = await importTagServer(cluster);
      const digest = await cluster.importByDigest(image, IMAGE);
      gatewayDigest = digest;
      const [node] = cluster.nodes;
      if (node === undefined) throw new Error('the cluster has no node');
      edge = await startUpstream({ address: node.address.replace(/\d+$/, '1'), name: 'edge' });

      values = {
        image: { repository: 'provisioner.test/provisioner', digest: `sha256:${'a'.repeat(64)}` },
        instance: 'test',
        host: HOST,
        settings: { KUBERNETES_GATEWAY_ADDRESS: node.address },
        gateway: {
          enabled: true,
          image: { repository: IMAGE, digest },
          detectionSeconds: 2,
          settings: { PREVIEW_IDLE_SECONDS: 3 },
          service: { type: 'NodePort', nodePorts: PORTS, fallbackNodePorts: FALLBACK_PORTS },
          resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '1Gi' } },
        },
      };
      // The provisioner itself runs as a process of this machine, so its pod isn't waited for.
      await helm(
        ...['install', 'tagyard', CHART, '--namespace', 'tagyard', '--create-namespace'],
        ...['--kubeconfig', cluster.kubeconfig, ...valueFlags(values)],
      );

      ca = await ensureLocalCa(join(folder, 'ca'));
      const tls = join(folder, 'tls');
      await mkdir(tls);
      for (const [name, stem] of [
        [`*.${EMULATOR_ZONE}`, `_.${EMULATOR_ZONE}`],
        [CUSTOM, CUSTOM],
      ] as const) {
        const pair = await ca.pathsFor(name);
        await cp(pair.cert, join(tls, `${stem}.pem`));
        await cp(pair.key, join(tls, `${stem}.key`));
      }
      const sitesRepo = join(folder, 'sites.git');
      await initSitesRepo(sitesRepo);
      const ageIdentity = await generateIdentity();
      const port = await freePort('127.0.0.1', 0);
      answers = await startEdgeAnswers(emulator);
      startProvisioner = (env = {}) =>
        ProvisionerProcess.start({
          ...{ folder, sitesRepo, ageIdentity, emulator, secret: SECRET },
          env: {
            ...answers.env,
            TAGYARD_INSTANCE: 'test',
            HOST_NAME: HOST,
            HOST_KIND: 'kubernetes',
            KUBECONFIG: cluster.kubeconfig,
            KUBERNETES_GATEWAY_NAMESPACE: GATEWAYS,
            KUBERNETES_GATEWAY_ADDRESS: node.address,
            KUBERNETES_POLICY_SERVICE: `${GATEWAYS}/tagyard-gateway-policy`,
            KUBERNETES_HTTP_PORT: String(PORTS.http),
            KUBERNETES_TLS_PORT: String(PORTS.https),
            TLS_DIR: tls,
            EDGE_UPSTREAM: `http://${node.address.replace(/\d+$/, '1')}:${edge.port}`,
            RECONCILE_INTERVAL_SECONDS: '5',
            // Fixed: the API knows the provisioner by its URL, also after a restart.
            PROVISIONER_PORT: String(port),
            ...env,
          },
        });
      provisioner = await startProvisioner();
      world = await World.open({
        bare: sitesRepo,
        daemon: { url: provisioner.url, secret: SECRET },
        logLevel: 'warn',
        settings: {
          host: HOST,
          image: tagServer,
          edgeDomain: EMULATOR_ZONE,
          originDomain: EMULATOR_ZONE,
          ageRecipient: await identityToRecipient(ageIdentity),
        },
      });
      client = await world.client();
      const created = await call('POST', '/server-containers', creation(client));
      ({ id, siteId: site, hostnames } = created.body);
      await eventually(async () => {
        const { status, statusReason } = (await call('GET', `/server-containers/${id}`)).body;
        expect([status, statusReason]).toEqual(['active', null]);
      }, WAIT);
    }, 600_000);
    afterAll(async () => {
      await world?.close();
      await provisioner?.[Symbol.asyncDispose]();
      await answers?.close();
      await emulator?.close();
      await edge?.close();
      await cluster?.[Symbol.asyncDispose]();
      if (folder !== undefined) await rm(folder, { recursive: true, force: true });
    });

    const call = (method: 'GET' | 'POST' | 'DELETE', path: string, body?: object) =>
      world.call(method, path, { as: 'owner', ...(body === undefined ? {} : { body }) });
    const endpoints = () =>
      cluster.nodes.map(({ address }) => ({ address, httpPort: PORTS.http, tlsPort: PORTS.https }));
    /** What arrives behind each gateway when a request states the visitor's address with this hop secret. */
    const arrivals = async (secret: string) =>
      await Promise.all(
        endpoints().map(async (endpoint) => {
          const headers = { 'x-tagyard-hop-secret': secret, 'x-tagyard-visitor': VISITOR };
          return (await ask(endpoint, { host: hostnames.origin, path: ARRIVAL_PATH, headers })).body;
        }),
      );
    const served = async () => {
      const url = `${provisioner.url}/sites/${site}/host-report`;
      const answer = await fetch(url, { headers: { 'x-secret': SECRET } });
      return reported.parse(await answer.json()).certificates;
    };
    const secrets = async () => {
      const found = await cluster.kubectl('get', 'secrets', '--namespace', GATEWAYS, '--output', 'name');
      return found.trim().split('\n');
    };

    test('is reached through both gateways under its origin and preview names, with its certificate', async () => {
      const trusted = await readFile(ca.caFile, 'utf8');
      for (const endpoint of endpoints()) {
        for (const host of [hostnames.origin, hostnames.preview]) {
          const { status, body } = await ask(endpoint, { host, ca: trusted });
          expect([status, body]).toEqual([200, expect.stringContaining('id=GTM-SRV12345')]);
        }
      }
    });

    test('is reached through the second Service, too, and a load balancer learns that each gateway serves', async () => {
      for (const { address } of endpoints()) {
        const fallback = { address, httpPort: 0, tlsPort: FALLBACK_PORTS.https };
        expect((await ask(fallback, { host: hostnames.origin })).status).toBe(200);
        for (const { health } of [PORTS, FALLBACK_PORTS]) {
          const { status } = await fetch(`http://${address}:${health}/serving`);
          expect(status).toBe(200);
        }
      }
    });

    test('gets the visitor’s address from the edge, and from no one without the hop secret', async () => {
      for (const arrived of await arrivals(HOP_SECRET)) expect(arrived).toContain(VISITOR);
      for (const arrived of await arrivals(NEXT_SECRET)) expect(arrived).not.toContain(VISITOR);
    });

    test('is reported with the certificates that are served', async () => {
      const certificates = await served();
      for (const name of [hostnames.origin, hostnames.preview]) {
        expect(certificates).toContainEqual(expect.objectContaining({ name, covers: true, problem: null }));
      }
    });

    test('leads a custom domain to the edge, once its manifest has it', async () => {
      const clone = await world.clone();
      const file = join(clone, `${site}.yaml`);
      const text = await readFile(file, 'utf8');
      // Without a domain proof, the API puts the domain in `unproven`; gateways serve its names only if it isn't there.
      const others = text.replace(/^(?:customDomains|unproven):.*\n(?:[ -].*\n)*/gm, '');
      await writeFile(file, `${others}customDomains: [${CUSTOM}]\n`);
      await world.git(clone, 'commit', '--quiet', '--all', '--message', 'Add a custom domain');
      await world.git(clone, 'push', '--quiet');
      const trusted = await readFile(ca.caFile, 'utf8');
      for (const endpoint of endpoints()) {
        await eventually(async () => {
          const { headers } = await ask(endpoint, { host: CUSTOM, ca: trusted });
          expect(headers['x-upstream']).toBe('edge');
        }, WAIT);
      }
      expect(edge.seen.at(-1)?.headers).toMatchObject({
        host: hostnames.edge,
        'x-tagyard-hop-secret': HOP_SECRET,
      });
    });

    test('has a policy script, which its pods read by a name that visitors can’t use', async () => {
      const script = "gtag('policy', 'all', () => true);";
      await world.call('PUT', `/clients/${client}/policy`, { as: 'owner', body: { script } });
      const namespace = `tagyard-test-${client}`;
      const deployment = async () =>
        processing.parse(
          JSON.parse(
            await cluster.kubectl(
              ...[
                'get',
                'deployment',
                `tag-${site}-processing`,
                '--namespace',
                namespace,
                '--output',
                'json',
              ],
            ),
          ),
        );
      await eventually(async () => {
        const { spec, status } = await deployment();
        expect(JSON.stringify(spec.template)).toContain(`https://tag-${site}-policy/`);
        expect(status.updatedReplicas).toBe(status.availableReplicas);
        expect((await call('GET', `/server-containers/${id}`)).body.statusReason).toBeNull();
      }, WAIT);
      // A pod with the settings of a tag server's pod, but with a program that prints the script.
      const { template } = (await deployment()).spec;
      const [server] = template.spec.containers;
      const program = `fetch(process.env.POLICY_SCRIPT_URL).then((answer) => answer.text(), String)
      .then((text) => require('node:fs').writeFileSync('/dev/termination-log', text));`;
      const file = join(folder, 'reader.json');
      const { readinessProbe: _, startupProbe: __, livenessProbe: ___, ...rest } = server ?? {};
      const reader = { ...rest, image: `${IMAGE}@${gatewayDigest}`, command: ['node', '--eval', program] };
      const metadata = { ...template.metadata, name: 'reader', namespace };
      const spec = { ...template.spec, restartPolicy: 'Never', containers: [reader] };
      await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata, spec }));
      await cluster.kubectl('create', '--filename', file);
      const printed = async () =>
        await cluster.kubectl(
          ...['get', 'pod', 'reader', '--namespace', namespace, '--output'],
          'jsonpath={.status.containerStatuses[0].state.terminated.message}',
        );
      await eventually(async () => expect(await printed()).toBe(`(function () {\n${script}\n})();`), WAIT);
      await cluster.kubectl('delete', 'pod', 'reader', '--namespace', namespace);
      for (const endpoint of endpoints()) {
        await expect(ask(endpoint, { host: `tag-${site}-policy` })).rejects.toThrow();
      }
    });

    test('has a preview server on demand, which gateways start for a request and stop when unused', async () => {
      const clone = await world.clone();
      const file = join(clone, `${site}.yaml`);
      const manifest = parseDocument(await readFile(file, 'utf8'));
      manifest.setIn(['resources', 'preview', 'onDemand'], true);
      await writeFile(file, String(manifest));
      await world.git(clone, 'commit', '--quiet', '--all', '--message', 'Run the preview server on demand');
      await world.git(clone, 'push', '--quiet');
      const namespace = `tagyard-test-${client}`;
      const pods = async () => {
        const selector = `tagyard/site=${site},tagyard/role=preview`;
        const found = await cluster.kubectl(
          ...['get', 'pods', '--namespace', namespace, '--selector', selector, '--output', 'name'],
        );
        return found.trim().split('\n').filter(Boolean);
      };
      // The preview server that was always running ends once it is unused.
      await eventually(async () => expect(await pods()).toEqual([]), WAIT);
      const [endpoint] = endpoints();
      if (endpoint === undefined) throw new Error('the cluster has no node');
      const { status, body } = await ask(endpoint, { host: hostnames.preview, timeoutMs: 60_000 });
      expect([status, body]).toEqual([200, expect.stringContaining('id=GTM-SRV12345')]);
      expect(await pods()).toHaveLength(1);
      expect((await call('GET', `/server-containers/${id}`)).body.statusReason).toBeNull();
      await eventually(async () => expect(await pods()).toEqual([]), WAIT);
    });

    test('is served by gateways that may start and stop its preview server, and scale nothing else', async () => {
      const account = await callerAs(cluster, `system:serviceaccount:${GATEWAYS}:tagyard-gateway`);
      const scale = (namespace: string, name: string, replicas: number) =>
        account({
          method: 'PATCH',
          path: `/apis/apps/v1/namespaces/${namespace}/deployments/${name}/scale?fieldManager=test&force=true&dryRun=All`,
          body: {
            apiVersion: 'autoscaling/v1',
            kind: 'Scale',
            metadata: { name, namespace },
            spec: { replicas },
          },
        });
      const own = `tagyard-test-${client}`;
      for (const replicas of [0, 1]) {
        expect((await scale(own, `tag-${site}-preview`, replicas)).status).toBe(200);
      }
      for (const [namespace, name, replicas] of [
        [own, `tag-${site}-preview`, 2],
        [own, `tag-${site}-processing`, 0],
        [GATEWAYS, 'tagyard-gateway', 0],
      ] as const) {
        expect(await scale(namespace, name, replicas)).toEqual({
          status: 403,
          message: expect.stringContaining('a gateway may only start and stop preview servers'),
        });
      }
    });

    test('is served with both hop secrets while one replaces the other', async () => {
      await provisioner.kill();
      provisioner = await startProvisioner({ HOP_SECRET: NEXT_SECRET, HOP_SECRET_PREVIOUS: HOP_SECRET });
      await eventually(async () => {
        for (const secret of [HOP_SECRET, NEXT_SECRET])
          for (const arrived of await arrivals(secret)) expect(arrived).toContain(VISITOR);
      }, WAIT);
    });

    test('has certificates that an authority issues after asking either gateway', async () => {
      const [first, second] = cluster.nodes;
      if (first === undefined || second === undefined) throw new Error('the cluster lacks a node');
      await using names = new AsyncDisposableStack();
      const knot = names.adopt(await startKnot(), (one) => one.close());
      const pebble = names.adopt(await startPebble({ dnsPort: knot.port, httpPort: PORTS.http }), (one) =>
        one.close(),
      );
      // Each name leads to the gateway of one node.
      const label = (host: string) => host.slice(0, host.indexOf('.'));
      await knot.update(
        `add ${label(hostnames.origin)} 1 A ${first.address}`,
        `add ${label(hostnames.preview)} 1 A ${second.address}`,
      );
      await provisioner.kill();
      provisioner = await startProvisioner({
        HOP_SECRET: NEXT_SECRET,
        ACME_DIRECTORY_URL: pebble.directoryUrl,
        ACME_CA_FILE: pebble.caFile,
        ACME_ADDRESSES: second.address,
        DNS_RESOLVERS: `127.0.0.1:${knot.port}`,
      });
      const clone = await world.clone();
      const file = join(clone, `${site}.yaml`);
      const manifest = parseDocument(await readFile(file, 'utf8'));
      manifest.set('tls', { mode: 'acme' });
      manifest.delete('customDomains');
      await writeFile(file, String(manifest));
      await world.git(clone, 'commit', '--quiet', '--all', '--message', 'Order certificates');
      await world.git(clone, 'push', '--quiet');
      const root = await pebble.root();
      for (const endpoint of endpoints()) {
        for (const host of [hostnames.origin, hostnames.preview]) {
          await eventually(async () => {
            expect((await ask(endpoint, { host, ca: root, timeoutMs: 60_000 })).status).toBe(200);
          }, WAIT);
        }
      }
      // This check asks by the public names, which only this name server has.
      const { checks } = health.parse(await (await provisioner.call('GET', '/health')).json());
      expect(checks.find(({ name }) => name === 'gateway')).toMatchObject({ status: 'passed', fix: null });
      // Both gateways give the same answer to a token.
      const path = '/.well-known/acme-challenge/any-token';
      const answers = await Promise.all(
        endpoints().map((endpoint) => ask(endpoint, { host: hostnames.origin, servername: null, path })),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200]);
      expect(answers[0]?.body).toMatch(/^any-token\.[A-Za-z0-9_-]{43}$/);
      expect(answers[1]?.body).toBe(answers[0]?.body);
    });

    test('can have fronts that the API server accepts: an Ingress, and routes of the Gateway API', async () => {
      const own = { host: CUSTOM, secretName: 'own', annotations: { 'cert-manager.io/issuer': 'example' } };
      const definitions = await gatewayApiDefinitions();
      await cluster.kubectl('apply', '--server-side', '--filename', definitions);
      const fronts = {
        ...values,
        gateway: {
          ...(values as { gateway: object }).gateway,
          service: { type: 'LoadBalancer' },
          ingress: {
            enabled: true,
            className: 'nginx',
            hosts: [`*.${EMULATOR_ZONE}`],
            secretName: 'wildcard',
          },
          gatewayApi: {
            enabled: true,
            className: 'example',
            hosts: [`*.${EMULATOR_ZONE}`],
            customDomains: [own],
          },
        },
      };
      const file = join(folder, 'fronts.yaml');
      await writeFile(file, await renderedChart(fronts));
      await eventually(async () => {
        const found = await cluster.kubectl(
          ...['apply', '--dry-run=server', '--validate=strict', '--filename', file, '--output', 'name'],
        );
        expect(found).toContain('ingress.networking.k8s.io/tagyard-gateway');
        for (const kind of ['gateway', 'tlsroute', 'httproute'])
          expect(found).toContain(`${kind}.gateway.networking.k8s.io/tagyard-gateway`);
        for (const kind of ['listenerset', 'httproute', 'backendtlspolicy'])
          expect(found).toContain(`${kind}.gateway.networking.k8s.io/tagyard-gateway-`);
      }, WAIT);
    });

    test('is removed from the gateways with its certificate', async () => {
      expect(await secrets()).toContain(`secret/tagyard-site-${site}`);
      expect((await secrets()).filter((name) => name.includes('tagyard-tls-'))).toHaveLength(3);
      await call('DELETE', `/server-containers/${id}`);
      await eventually(async () => expect(await secrets()).toEqual(['secret/tagyard-instance']), WAIT);
      for (const endpoint of endpoints()) {
        await expect(ask(endpoint, { host: hostnames.origin })).rejects.toThrow();
      }
    });
  },
);
