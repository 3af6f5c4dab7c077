import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ExecaError } from 'execa';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { clientObjects, footprintOf } from '../../../gitops/kubernetes/applier/objects/client.ts';
import { initialReplicas, scaleOf } from '../../../gitops/kubernetes/applier/objects/scale.ts';
import { siteObjects } from '../../../gitops/kubernetes/applier/objects/site.ts';
import type { KubernetesObject } from '../../../gitops/kubernetes/client/kinds.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { writeProgramImage } from '../../support/kubernetes/image.ts';
import { CLUSTER, manifests, withAccount } from '../../support/kubernetes/manifests.ts';
import { loadedManifest } from '../../support/manifest.ts';

const WAIT = { timeoutMs: 120_000, intervalMs: 300 };

/** Random manifests that the API server judges: each has nine objects. */
const SAMPLES = 10;

/** What the cluster itself sets in stored objects; the objects that we apply don't contain it. */
const ASSIGNED: Readonly<Record<string, readonly string[]>> = {
  Namespace: ['spec', 'status', 'metadata.labels.kubernetes.io/metadata.name'],
  ResourceQuota: ['status'],
  Service: ['spec.clusterIP', 'spec.clusterIPs', 'spec.ipFamilies', 'status'],
  Deployment: ['metadata.annotations', 'spec.replicas', 'status'],
  PodDisruptionBudget: ['status'],
  HorizontalPodAutoscaler: ['status'],
};
const STORED_METADATA = ['uid', 'resourceVersion', 'generation', 'creationTimestamp', 'managedFields'];

/** Critical findings of kube-score that are intended, with the reason. */
const INTENDED: Readonly<Record<string, string>> = {
  'container-image-pull-policy': 'the image is named by its digest, so what is on the node is the same',
  'pod-probes-identical': 'the image has one health check; a restart takes four times as many failures',
};

describeWith(['kubernetes', 'root'], 'the objects of a site on a real cluster', () => {
  let cluster: Cluster;
  let site: LoadedManifest;
  let image: string;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    const file = join(cluster.folder, 'web.tar');
    image = await writeProgramImage(file, {
      name: 'web.test/web:1',
      program: '/bin/busybox',
      // The probes ask for /healthz.
      entrypoint: [
        '/bin/busybox',
        'sh',
        '-c',
        'echo ok > /tmp/healthz; exec /bin/busybox httpd -f -p $PORT -h /tmp',
      ],
    });
    await cluster.importImages(file);
    const resources = { processing: { replicas: { min: 2, max: 4 } } };
    site = withAccount(loadedManifest('acme-shop', 0, { image, resources }));
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  /** `kubectl` with the objects, as our field manager. */
  const kubectl = async (verb: string, objects: readonly KubernetesObject[], ...args: string[]) => {
    const file = join(cluster.folder, 'objects.json');
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    return await cluster.kubectl(verb, '--server-side', '--field-manager=tagyard', '-f', file, ...args);
  };
  const apply = (objects: readonly KubernetesObject[], ...args: string[]) =>
    kubectl('apply', objects, '--validate=strict', ...args);
  const ofClient = (manifest = site) => clientObjects(manifest.client, CLUSTER, footprintOf([manifest]));
  const get = async (kind: string, name: string, namespace?: string) => {
    const within = namespace === undefined ? [] : ['--namespace', namespace];
    return JSON.parse(await cluster.kubectl('get', kind, name, ...within, '--output', 'json'));
  };

  test('are valid in every member', async () => {
    const client = ofClient();
    await apply(client.slice(0, 1), '--dry-run=server');
    await apply(client.slice(0, 1));
    const rest = [...client.slice(1), ...siteObjects(site, CLUSTER)];
    const answer = await apply(rest, '--dry-run=server');
    expect(answer.split('\n')).toHaveLength(rest.length);
    const secret = siteObjects(site, CLUSTER).find(({ kind }) => kind === 'Secret');
    const wrong = { ...secret, spec: {} } as KubernetesObject;
    await expect(apply([wrong], '--dry-run=server')).rejects.toThrow(/unknown field/);
  });

  test('are valid for other manifests, with the longest names and odd limits', async () => {
    const sites = [
      loadedManifest('x'.repeat(48)),
      loadedManifest('0--0', 1, { resources: { processing: { memory: '999999g', cpus: 0.000_1 } } }),
      ...fc.sample(manifests, SAMPLES),
    ];
    const withGateway = { ...CLUSTER, gatewayNamespace: 'edge' };
    const others = sites.flatMap((one, index) => siteObjects(one, index % 2 === 0 ? CLUSTER : withGateway));
    const answer = await apply(others, '--dry-run=server');
    expect(answer.split('\n')).toHaveLength(others.length);
    const footprint = footprintOf(sites);
    await apply(clientObjects(site.client, CLUSTER, footprint), '--dry-run=server');
  });

  test('are stored as they are written, with nothing that a later apply would change', async () => {
    const objects = [...ofClient(), ...siteObjects(site, CLUSTER)];
    await apply(objects);
    expect(await kubectl('diff', objects)).toBe('');
    for (const object of objects) {
      const { kind, metadata } = object;
      const stored = await get(kind, metadata.name, metadata.namespace);
      for (const name of STORED_METADATA) delete stored.metadata[name];
      const differing = differences(object, stored);
      expect({ kind, differing }).toEqual({
        kind,
        differing: differing.filter((path) => ASSIGNED[kind]?.includes(path) === true),
      });
    }
  });

  test('are admitted under the restricted standard, and their pods run', async () => {
    const [{ metadata }] = ofClient() as [KubernetesObject];
    const namespace = metadata.name;
    const scaled = `--replicas=${initialReplicas(site)}`;
    await cluster.kubectl('scale', 'deployment', 'tag-acme-shop-processing', '-n', namespace, scaled);
    for (const name of ['tag-acme-shop-processing', 'tag-acme-shop-preview']) {
      await cluster.kubectl('rollout', 'status', `deployment/${name}`, '-n', namespace, '--timeout=120s');
    }
    const bare = ['run', 'bare', '-n', namespace, `--image=${image}`];
    await expect(cluster.kubectl(...bare)).rejects.toThrow(/violates PodSecurity "restricted:latest"/);
  });

  test('have a quota with room for a rollout of all pods that the autoscaler may make', async () => {
    const [{ metadata }] = ofClient() as [KubernetesObject];
    const namespace = metadata.name;
    const { max } = scaleOf(site);
    const name = 'deployment/tag-acme-shop-processing';
    await cluster.kubectl('scale', name, '-n', namespace, `--replicas=${max}`);
    await apply(siteObjects(site, { ...CLUSTER, edition: () => '1' }));
    let most = 0;
    const quota = async () => {
      const { status } = await get('resourcequota', 'tagyard', namespace);
      most = Math.max(most, Number(status.used.pods));
    };
    await eventually(async () => {
      await quota();
      const { metadata: own, spec, status } = await get('deployment', 'tag-acme-shop-processing', namespace);
      expect(status.observedGeneration).toBe(own.generation);
      expect([status.updatedReplicas, status.availableReplicas]).toEqual([spec.replicas, spec.replicas]);
      expect(status.replicas).toBe(spec.replicas);
    }, WAIT);
    const refused = await cluster.kubectl(
      'get',
      'events',
      '-n',
      namespace,
      '--field-selector=reason=FailedCreate',
    );
    expect(refused).toBe('');
    // Pods that ended still counted while new ones were made.
    expect(most).toBeGreaterThan(max + 1 + 1);
  });

  test('have no critical finding of kube-score except the intended ones', async () => {
    const file = join(cluster.folder, 'scored.yaml');
    const objects = [...ofClient(), ...siteObjects(site, CLUSTER)];
    await writeFile(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
    const score = ['score', '--kubernetes-version', 'v1.36', '--output-format', 'json', file];
    const scored = JSON.parse(await cluster.program('kube-score', ...score).catch(answerOf));
    const critical = scored.flatMap(({ checks }: Scored) =>
      checks.filter(({ grade, skipped }) => grade === CRITICAL && !skipped).map(({ check }) => check.id),
    );
    const both = ['processing', 'preview'];
    expect(critical.sort()).toEqual(both.flatMap(() => Object.keys(INTENDED)).sort());
  });
});

/** An object as kube-score has judged it. */
interface Scored {
  readonly checks: readonly {
    readonly check: { readonly id: string };
    readonly grade: number;
    readonly skipped: boolean;
  }[];
}
const CRITICAL = 1;

/** What a program that ended with an error has printed. kube-score ends with one if it has a finding. */
function answerOf(error: unknown): string {
  if (error instanceof ExecaError && typeof error.stdout === 'string') return error.stdout;
  throw error;
}

/** The paths at which an object differs from what is stored of it. */
function differences(ours: unknown, stored: unknown, path: readonly string[] = []): string[] {
  if (isDeepStrictEqual(ours, stored)) return [];
  if (!isMembers(ours) || !isMembers(stored)) return [path.join('.')];
  return [...new Set([...Object.keys(ours), ...Object.keys(stored)])].flatMap((key) =>
    differences(ours[key], stored[key], [...path, key]),
  );
}

function isMembers(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
