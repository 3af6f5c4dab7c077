import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Recycling } from '../../../../gitops/appliers/containers/recycling.ts';
import { clientObjects, footprintOf } from '../../../../gitops/kubernetes/applier/objects/client.ts';
import { initialReplicas } from '../../../../gitops/kubernetes/applier/objects/scale.ts';
import type { ClusterSettings } from '../../../../gitops/kubernetes/applier/objects/settings.ts';
import { siteObjects } from '../../../../gitops/kubernetes/applier/objects/site.ts';
import type { Kind } from '../../../../gitops/kubernetes/client/kinds.ts';
import type { LoadedManifest } from '../../../../sites/manifest/containers.ts';
import { TAG_SERVER } from '../../../../sites/manifest/resources/tag-server.ts';
import { Secret } from '../../../../sites/manifest/secrets.ts';
import { CLUSTER, manifests, withAccount } from '../../../support/kubernetes/manifests.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const DAY_MS = 86_400_000;

// biome-ignore lint/suspicious/noExplicitAny: the tests read single members of objects of ten kinds
type Members = any;

function find(kind: Kind, manifest: LoadedManifest, settings: ClusterSettings = CLUSTER, role = ''): Members {
  const found = siteObjects(manifest, settings).find(
    (object) => object.kind === kind && object.metadata.name.endsWith(role),
  );
  if (found === undefined) throw new Error(`there is no ${kind} ${role}`);
  return found;
}

const pod = (manifest = loadedManifest(), settings = CLUSTER, role = 'processing'): Members =>
  find('Deployment', manifest, settings, role).spec.template;
const container = (manifest = loadedManifest(), settings = CLUSTER, role = 'processing'): Members =>
  pod(manifest, settings, role).spec.containers[0];
const environment = (...of: Parameters<typeof container>): Record<string, string> =>
  Object.fromEntries(container(...of).env.map(({ name, value }: Members) => [name, value]));

describe('the objects of a site in a cluster', () => {
  test('have the Deployments last, after all that these need', () => {
    const objects = siteObjects(loadedManifest(), CLUSTER);
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toEqual([
      'NetworkPolicy tag-acme-shop-processing',
      'NetworkPolicy tag-acme-shop-preview',
      expect.stringMatching(/^Secret tag-acme-shop-[0-9a-f]{10}$/),
      'Service tag-acme-shop-processing',
      'Service tag-acme-shop-preview',
      'PodDisruptionBudget tag-acme-shop-processing',
      'HorizontalPodAutoscaler tag-acme-shop-processing',
      'Deployment tag-acme-shop-processing',
      'Deployment tag-acme-shop-preview',
    ]);
    for (const { metadata } of objects) {
      expect(metadata.namespace).toBe('tagyard-tagyard-7c9e6679-7425-40de-944b-e07fc1f90ae7');
      expect(metadata.labels).toEqual({
        'app.kubernetes.io/managed-by': 'tagyard',
        'tagyard/instance': 'tagyard',
        'tagyard/host': 'tag-1',
        'tagyard/client': '7c9e6679-7425-40de-944b-e07fc1f90ae7',
        'tagyard/site': 'acme-shop',
      });
    }
  });

  test('are valid for every valid manifest: names, labels, quantities, requests within limits', () => {
    const NAME = /^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/;
    const VALUE = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/;
    fc.assert(
      fc.property(manifests, (manifest) => {
        const objects = [
          ...clientObjects(manifest.client, CLUSTER, footprintOf([manifest])),
          ...siteObjects(manifest, CLUSTER),
        ];
        for (const { metadata } of objects) {
          expect(metadata.name).toMatch(NAME);
          if (metadata.namespace !== undefined) expect(metadata.namespace).toMatch(NAME);
          for (const value of Object.values(metadata.labels ?? {})) expect(value).toMatch(VALUE);
        }
        for (const role of ['processing', 'preview']) {
          const { metadata } = pod(manifest, CLUSTER, role);
          for (const value of Object.values(metadata.labels)) expect(value).toMatch(VALUE);
          const { requests, limits } = container(manifest, CLUSTER, role).resources;
          expect(milli(requests.cpu)).toBeLessThanOrEqual(milli(limits.cpu));
          expect(milli(requests.cpu)).toBeGreaterThan(0);
          expect(bytes(requests.memory)).toBeLessThanOrEqual(bytes(limits.memory));
        }
      }),
      { numRuns: 200 },
    );
  });

  test('run the image as Docker does: not root, nothing writable but a small /tmp, no privileges', () => {
    const { spec } = pod();
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    });
    expect(container()).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      volumeMounts: [{ name: 'tmp', mountPath: '/tmp' }],
    });
    expect(spec.volumes).toEqual([{ name: 'tmp', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } }]);
  });

  test('name the image by its digest, and never pull one that has only an id', () => {
    const image = `gcr.io/x/y@sha256:${'b'.repeat(64)}`;
    expect(container(loadedManifest('acme', 0, { image }))).toMatchObject({
      image,
      imagePullPolicy: 'IfNotPresent',
    });
    expect(container().imagePullPolicy).toBe('Never');
  });

  test('listen on ports of their own, which probes, Services and policies name', () => {
    const manifest = loadedManifest('acme', 3);
    for (const [role, port] of Object.entries(manifest.ports)) {
      const one = container(manifest, CLUSTER, role);
      expect(environment(manifest, CLUSTER, role).PORT).toBe(String(port));
      expect(one.ports).toEqual([{ name: 'http', containerPort: port, protocol: 'TCP' }]);
      expect(one.startupProbe.tcpSocket.port).toBe(port);
      // With this header, the image answers by its age in milliseconds, and not with 503 after its service time.
      const httpHeaders = [{ name: 'x-sgtm-healthz', value: 'server_start_millis=9000000000000000' }];
      for (const probe of [one.readinessProbe, one.livenessProbe])
        expect(probe.httpGet).toEqual({ path: '/healthz', port, scheme: 'HTTP', httpHeaders });
      expect(find('Service', manifest, CLUSTER, role).spec.ports).toEqual([
        { name: 'http', port, targetPort: port, protocol: 'TCP' },
      ]);
      expect(find('NetworkPolicy', manifest, CLUSTER, role).spec.ingress[0].ports).toEqual([
        { port, protocol: 'TCP' },
      ]);
    }
  });

  test('are asked by settings that take one that hangs out of service in 19 s, and restart it in 124 s', () => {
    const { readinessProbe, livenessProbe } = container(loadedManifest(), CLUSTER);
    // The process may hang right after an answer.
    const longest = (probe: { periodSeconds: number; failureThreshold: number; timeoutSeconds: number }) =>
      probe.periodSeconds * probe.failureThreshold + probe.timeoutSeconds;
    expect([longest(readinessProbe), longest(livenessProbe)]).toEqual([19, 124]);
  });

  test('have the environment of Docker’s containers, and a preview address over TLS', () => {
    const NODE_OPTIONS = `--max-http-header-size=${TAG_SERVER.maxHeaderOctets}`;
    expect(environment(loadedManifest(), { ...CLUSTER, originPort: 8443 })).toEqual({
      NODE_OPTIONS,
      PREVIEW_SERVER_URL: 'https://acme-shop-preview.example.net:8443',
      PORT: '20000',
      CONTAINER_CONFIG: undefined,
    });
    expect(environment(loadedManifest(), CLUSTER, 'preview')).toEqual({
      NODE_OPTIONS,
      RUN_AS_PREVIEW_SERVER: 'true',
      PORT: '20001',
      CONTAINER_CONFIG: undefined,
    });
  });

  test('keep secrets in an immutable Secret whose name depends on its content, and in nothing else', () => {
    const manifest = withAccount(loadedManifest());
    const secret = find('Secret', manifest);
    expect(secret).toMatchObject({ immutable: true, type: 'Opaque' });
    expect(Buffer.from(secret.data.CONTAINER_CONFIG, 'base64').toString()).toBe(manifest.config.reveal());
    expect(Buffer.from(secret.data['service-account.json'], 'base64').toString()).toBe('{}');
    const { name } = secret.metadata;
    expect(container(manifest).env).toContainEqual({
      name: 'CONTAINER_CONFIG',
      valueFrom: { secretKeyRef: { name, key: 'CONTAINER_CONFIG' } },
    });
    expect(pod(manifest).spec.volumes[1]).toEqual({
      name: 'files',
      secret: {
        secretName: name,
        defaultMode: 0o440,
        items: [{ key: 'service-account.json', path: 'service-account.json' }],
      },
    });
    expect(environment(manifest)).toMatchObject({
      GOOGLE_APPLICATION_CREDENTIALS: '/etc/tagyard/service-account.json',
      GOOGLE_CLOUD_PROJECT: 'acme',
    });
    const others = siteObjects(manifest, CLUSTER).filter(({ kind }) => kind !== 'Secret');
    expect(JSON.stringify(others)).not.toContain(manifest.config.reveal());
    const names = [
      { ...manifest, config: new Secret('another') },
      { ...manifest, serviceAccountKey: new Secret('another') },
      loadedManifest(),
    ].map((other) => find('Secret', other).metadata.name);
    expect(new Set([...names, name]).size).toBe(4);
  });

  test('never have fewer pods during a rollout, are spread over nodes and zones, and soon move off a lost node', () => {
    const { spec } = find('Deployment', loadedManifest(), CLUSTER, 'processing');
    expect(spec).toMatchObject({
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } },
      minReadySeconds: 5,
      revisionHistoryLimit: 2,
    });
    expect(container().lifecycle).toEqual({ preStop: { sleep: { seconds: 10 } } });
    const { topologySpreadConstraints: spread, tolerations } = pod().spec;
    expect(spread.map(({ topologyKey, matchLabelKeys }: Members) => [topologyKey, matchLabelKeys])).toEqual([
      ['kubernetes.io/hostname', ['pod-template-hash']],
      ['topology.kubernetes.io/zone', ['pod-template-hash']],
    ]);
    expect(tolerations.map((one: Members) => [one.key, one.effect, one.tolerationSeconds])).toEqual([
      ['node.kubernetes.io/not-ready', 'NoExecute', 30],
      ['node.kubernetes.io/unreachable', 'NoExecute', 30],
    ]);
  });

  test('have exactly one preview pod, which no budget protects', () => {
    const { spec } = find('Deployment', loadedManifest(), CLUSTER, 'preview');
    expect(spec).toMatchObject({
      replicas: 1,
      strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } },
    });
    const budgets = siteObjects(loadedManifest(), CLUSTER).filter(
      ({ kind }) => kind === 'PodDisruptionBudget',
    );
    expect(budgets.map(({ spec: budget }) => budget)).toEqual([
      {
        maxUnavailable: 1,
        unhealthyPodEvictionPolicy: 'AlwaysAllow',
        selector: {
          matchLabels: {
            'tagyard/instance': 'tagyard',
            'tagyard/site': 'acme-shop',
            'tagyard/role': 'processing',
          },
        },
      },
    ]);
  });

  test.each([
    [1, 2, 2],
    [3, 3, 3],
    [{ min: 1, max: 1 }, 1, 1],
    [{ min: 2, max: 6 }, 2, 6],
  ])('with replicas %j scale from %i to %i, by the autoscaler alone', (replicas, min, max) => {
    const manifest = loadedManifest('acme', 0, { resources: { processing: { replicas } } });
    expect(find('HorizontalPodAutoscaler', manifest).spec).toMatchObject({
      minReplicas: min,
      maxReplicas: max,
      scaleTargetRef: { kind: 'Deployment', name: 'tag-acme-processing' },
      metrics: [{ resource: { name: 'cpu', target: { averageUtilization: 70 } } }],
    });
    expect(find('Deployment', manifest, CLUSTER, 'processing').spec).not.toHaveProperty('replicas');
    expect(initialReplicas(manifest)).toBe(min);
  });

  test('request what the manifest names, a default for the rest, and never more than the limits', () => {
    const of = (processing: object) =>
      container(loadedManifest('acme', 0, { resources: { processing } })).resources;
    expect(of({})).toMatchObject({
      requests: { cpu: '100m', memory: '256Mi' },
      limits: { cpu: '1', memory: '512Mi' },
    });
    expect(of({ memory: '1g', requests: { memory: '1024m' } })).toMatchObject({
      requests: { cpu: '100m', memory: '1Gi' },
      limits: { memory: '1Gi' },
    });
    expect(of({ memory: '128m', cpus: 0.05 })).toMatchObject({
      requests: { cpu: '50m', memory: '128Mi' },
      limits: { cpu: '50m', memory: '128Mi' },
    });
  });

  test('let in the admitted ranges or the gateway; with neither, only the site’s pods to its preview', () => {
    const from = (settings: Partial<ClusterSettings>, role = 'processing') =>
      find('NetworkPolicy', loadedManifest(), { ...CLUSTER, ...settings }, role).spec.ingress?.[0].from;
    expect(from({})).toEqual([
      { ipBlock: { cidr: '198.18.0.0/15' } },
      { ipBlock: { cidr: '2001:db8::/32' } },
    ]);
    const gateway = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } };
    expect(from({ gatewayNamespace: 'edge' })).toEqual([gateway]);
    expect(from({ admitCidrs: [] })).toBeUndefined();
    const own = { podSelector: { matchLabels: expect.objectContaining({ 'tagyard/role': 'processing' }) } };
    expect(from({ admitCidrs: [] }, 'preview')).toEqual([own]);
  });

  test('reach DNS, public addresses and the site’s own preview, and no private range', () => {
    const { egress } = find('NetworkPolicy', loadedManifest(), CLUSTER, 'processing').spec;
    const [dns, open, preview] = egress;
    expect(dns.ports).toEqual([
      { port: 53, protocol: 'UDP' },
      { port: 53, protocol: 'TCP' },
    ]);
    expect(open.to[0].ipBlock.cidr).toBe('0.0.0.0/0');
    expect(open.to[0].ipBlock.except).toEqual(
      expect.arrayContaining([
        '10.0.0.0/8',
        '172.16.0.0/12',
        '192.168.0.0/16',
        '100.64.0.0/10',
        '169.254.0.0/16',
      ]),
    );
    expect(open.to[1].ipBlock).toEqual({ cidr: '::/0', except: ['fc00::/7', 'fe80::/10'] });
    expect(preview.to[0].podSelector.matchLabels).toMatchObject({
      'tagyard/site': 'acme-shop',
      'tagyard/role': 'preview',
    });
    expect(find('NetworkPolicy', loadedManifest(), CLUSTER, 'preview').spec.egress).toHaveLength(2);
    const withGateway = { ...CLUSTER, gatewayNamespace: 'edge' };
    expect(find('NetworkPolicy', loadedManifest(), withGateway, 'processing').spec.egress[3]).toEqual({
      to: [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'edge' } } }],
      ports: [{ protocol: 'TCP' }],
    });
    expect(find('NetworkPolicy', loadedManifest(), withGateway, 'preview').spec.egress).toHaveLength(2);
  });

  test('get new pods every ten days, before the image reports itself unhealthy', () => {
    let now = 0;
    const recycling = new Recycling({ days: 10, now: () => now });
    const settings = { ...CLUSTER, edition: (site: string) => recycling.edition(site) };
    const templates = new Map<string, number>();
    for (let day = 0; day < 60; day += 1) {
      now = day * DAY_MS;
      const template = JSON.stringify(pod(loadedManifest(), settings));
      templates.set(template, (templates.get(template) ?? 0) + 1);
    }
    expect(Math.max(...templates.values())).toBeLessThanOrEqual(10);
    expect(templates.size).toBeGreaterThanOrEqual(6);
  });

  test('don’t exist for a site whose policy script nothing serves', () => {
    const manifest = { ...loadedManifest(), policy: { text: '', hash: '0123456789abcdef' } };
    expect(() => siteObjects(manifest, CLUSTER)).toThrow(
      /^the site has a policy script, which nothing serves/,
    );
    const policyScripts = {
      service: 'gateway-policy.gateways.svc.cluster.local',
      ca: 'a certificate',
      tokenOf: () => 'token',
    };
    const served = { ...CLUSTER, policyScripts };
    expect(environment(manifest, served)).toMatchObject({
      POLICY_SCRIPT_URL: 'https://tag-acme-shop-policy/token/0123456789abcdef.js',
      NODE_EXTRA_CA_CERTS: '/etc/tagyard/ca.pem',
    });
    const objects = siteObjects(manifest, served);
    expect(objects).toContainEqual(
      expect.objectContaining({
        kind: 'Service',
        metadata: expect.objectContaining({ name: 'tag-acme-shop-policy' }),
        spec: expect.objectContaining({ type: 'ExternalName', externalName: policyScripts.service }),
      }),
    );
    const preview = environment(manifest, served, 'preview');
    expect([preview.POLICY_SCRIPT_URL, preview.NODE_EXTRA_CA_CERTS]).toEqual([undefined, undefined]);
  });
});

describe('the objects of a client in a cluster', () => {
  const ofClient = (manifest: LoadedManifest, settings = CLUSTER): Members[] => [
    ...clientObjects(manifest.client, settings, footprintOf([manifest, manifest])),
  ];

  test('are a restricted namespace, a quota with room for a rollout, and a policy that refuses all', () => {
    const resources = { processing: { replicas: { min: 2, max: 5 } } };
    const [namespace, quota, policy] = ofClient(loadedManifest('acme', 0, { resources }));
    expect(namespace.metadata.labels).toMatchObject({
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/warn': 'restricted',
    });
    // Two sites, each with five old and five new pods, two more of the surge, and two previews.
    expect(quota.spec.hard).toMatchObject({
      pods: '28',
      'requests.cpu': '2800m',
      'limits.cpu': '26',
      'requests.memory': '7Gi',
    });
    expect(policy.spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] });
  });

  test('don’t exist in a namespace that others have made', () => {
    const settings = { ...CLUSTER, namespace: 'shared' };
    expect(ofClient(loadedManifest(), settings)).toEqual([]);
    expect(find('Secret', loadedManifest(), settings).metadata.namespace).toBe('shared');
  });
});

const milli = (cpu: string) => (cpu.endsWith('m') ? Number.parseInt(cpu, 10) : Number(cpu) * 1000);
const bytes = (memory: string) =>
  Number.parseInt(memory, 10) * 1024 ** ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi'].indexOf(memory.replace(/\d+/, ''));
