import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { PodOutages } from '../../../../gitops/kubernetes/applier/pod-outages.ts';
import { Copies } from '../../../../gitops/kubernetes/applier/state/copies.ts';
import { ObjectSpec } from '../../../../gitops/kubernetes/applier/state/object-spec.ts';
import { WantedSpecs } from '../../../../gitops/kubernetes/applier/state/wanted-specs.ts';
import { eventually } from '../../../support/eventually.ts';
import { fakeClock } from '../../../support/fake-clock.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';

const IDENTITY = { instance: 'test', host: 'tag-1' };
const NAMESPACE = 'sites';
const SINCE = '2026-01-01T00:00:05Z';

/** An API server with one Deployment of two pods, which changes. */
class PodServer {
  /** How many of the two pods are ready. */
  #ready = 2;
  /** The second pod has never been ready: its image can’t be pulled. */
  isUnstartable = false;
  /** Lists of pods fail while it is true. */
  isBroken = false;
  /** The queries of lists of pods. */
  readonly reads: string[] = [];
  #watch: ServerResponse | null = null;
  #version = 1;

  readonly answer = (request: IncomingMessage, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (searchParams.get('watch') === 'true') {
      response.writeHead(200).write('\n');
      this.#watch = response;
      return;
    }
    const isOfPods = pathname.endsWith('/pods');
    if (isOfPods) this.reads.push(searchParams.get('labelSelector') ?? '');
    if (isOfPods && this.isBroken) {
      response.writeHead(500).end('{"kind":"Status","message":"etcd is away"}');
      return;
    }
    const items = isOfPods
      ? ['one', 'two'].map((name, index) => this.#pod(name, index))
      : [pathname.endsWith('/replicasets') ? this.#replicaSet() : this.#deployment()];
    const metadata = { resourceVersion: String(this.#version) };
    response.writeHead(200).end(JSON.stringify({ metadata, items }));
  };

  get isWatched(): boolean {
    return this.#watch !== null;
  }

  set(ready: number): void {
    this.#ready = ready;
    this.#version += 1;
    this.#watch?.write(`${JSON.stringify({ type: 'MODIFIED', object: this.#deployment() })}\n`);
  }

  remove(): void {
    this.#version += 1;
    this.#watch?.write(`${JSON.stringify({ type: 'DELETED', object: this.#deployment() })}\n`);
  }

  #deployment(): object {
    const resourceVersion = String(this.#version);
    const labels = { 'tagyard/site': 'acme' };
    return {
      metadata: { name: 'tag-acme-processing', namespace: NAMESPACE, uid: 'd', resourceVersion, labels },
      spec: { replicas: 2 },
      status: {
        readyReplicas: this.#ready,
        availableReplicas: this.#ready,
        conditions: [{ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' }],
      },
    };
  }

  #replicaSet(): object {
    const resourceVersion = '1';
    const annotations = { 'deployment.kubernetes.io/revision': '1' };
    const ownerReferences = [{ uid: 'd', kind: 'Deployment', name: 'tag-acme-processing', controller: true }];
    return {
      metadata: {
        name: 'tag-acme-processing-h',
        namespace: NAMESPACE,
        uid: 'r',
        resourceVersion,
        annotations,
        ownerReferences,
      },
      spec: { template: {} },
      status: { availableReplicas: this.#ready },
    };
  }

  #pod(name: string, index: number): object {
    if (index === 1 && this.isUnstartable) {
      const waiting = {
        reason: 'ImagePullBackOff',
        message: 'Back-off pulling image "registry.example/secret-image"',
      };
      return {
        metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: '1' },
        status: { containerStatuses: [{ ready: false, state: { waiting } }] },
      };
    }
    const isReady = index < this.#ready;
    return {
      metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion: '1' },
      status: {
        conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False', lastTransitionTime: SINCE }],
        containerStatuses: [{ ready: isReady, state: { running: { startedAt: '2026-01-01T00:00:01Z' } } }],
      },
    };
  }
}

async function opened(stack: AsyncDisposableStack) {
  const api = new PodServer();
  const { client } = stack.use(await openedScripted(api.answer));
  const lines: string[] = [];
  const note = (_: object, message: string) => void lines.push(message);
  const log = { info: note, warn: note };
  const selection = { kinds: ['Deployment'], labels: '' } as const;
  const copies = new Copies({ client, identity: IDENTITY, namespace: NAMESPACE, log, selection });
  stack.defer(() => copies.close());
  const wanted = new WantedSpecs();
  const resources = {
    processing: { memory: '256m', cpus: 1, replicas: 2 },
    preview: { memory: '256m', cpus: 1, onDemand: false },
  };
  const metadata = { name: 'tag-acme-processing', namespace: NAMESPACE };
  const manifest = { site: 'acme', client: 'one', resources };
  const spec = new ObjectSpec(
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata },
    { manifest, secrets: ['registry.example/secret-image'], initialReplicas: null, refusal: null },
  );
  wanted.replace([spec], null);
  const outages = new PodOutages({ client, copies, wanted, identity: IDENTITY, log, clock: fakeClock() });
  stack.defer(() => outages.close());
  await eventually(() => expect(api.isWatched).toBe(true));
  return { api, outages, lines };
}

const FAULT = `the pod two doesn’t serve since ${SINCE} (it fails its health check, GET /healthz)`;

test('an outage of one pod is said, with the same text, until all pods were ready for a while', async () => {
  await using stack = new AsyncDisposableStack();
  const { api, outages, lines } = await opened(stack);
  expect(outages.faultOf('acme')).toBeNull();
  expect(api.reads).toEqual([]);

  api.set(1);
  const shown = `${FAULT}. This ends after 15 s with all pods ready`;
  await eventually(() => expect(outages.faultOf('acme')).toBe(shown));
  expect(new Set(api.reads)).toEqual(
    new Set(['tagyard/instance=test,tagyard/site=acme,tagyard/role=processing']),
  );
  expect(outages.faultOf('other')).toBeNull();
  api.set(0);
  const before = api.reads.length;
  await eventually(() => expect(api.reads.length).toBeGreaterThan(before + 2));
  expect(outages.faultOf('acme')).toBe(shown);

  api.set(2);
  await eventually(() => expect(outages.faultOf('acme')).toBeNull());
  expect(lines).toEqual([FAULT, 'all pods of the Deployment serve again']);
  const settled = api.reads.length;
  api.set(2);
  await eventually(() => expect(outages.faultOf('acme')).toBeNull());
  expect(api.reads).toHaveLength(settled);
});

test('a pod that can’t start beside another one is said, until it is ready', async () => {
  await using stack = new AsyncDisposableStack();
  const { api, outages, lines } = await opened(stack);
  api.isUnstartable = true;
  api.set(1);
  const said =
    '1 of 2 pods of tag-acme-processing can’t start (the image can’t be pulled: Back-off pulling image "[secret]")';
  await eventually(() => expect(outages.faultOf('acme') ?? lines.join()).toContain(said));
  expect(outages.serving('acme')).toMatchObject([{ kind: 'Deployment', name: 'tag-acme-processing' }]);
  expect(outages.serving('other')).toEqual([]);
  api.isUnstartable = false;
  api.set(2);
  await eventually(() => expect(outages.faultOf('acme')).toBeNull());
  expect(lines).toEqual([said, 'all pods of the Deployment serve again']);
});

test('pods of which none serves are left to the rollout', async () => {
  await using stack = new AsyncDisposableStack();
  const { api, outages } = await opened(stack);
  api.isUnstartable = true;
  api.set(0);
  await eventually(() => expect(outages.faultOf('acme')).toContain('the pod one doesn’t serve'));
  expect(outages.faultOf('acme')).not.toContain('can’t start');
  expect(outages.serving('acme')).toEqual([]);
});

test('pods that can’t be read are read again', async () => {
  await using stack = new AsyncDisposableStack();
  const { api, outages, lines } = await opened(stack);
  api.isBroken = true;
  api.set(1);
  await eventually(() => expect(lines.join()).toContain('etcd is away'));
  api.isBroken = false;
  await eventually(() => expect(outages.faultOf('acme')).toContain(FAULT));
});

test('the outage of a Deployment that is removed ends at once', async () => {
  await using stack = new AsyncDisposableStack();
  const { api, outages } = await opened(stack);
  api.set(1);
  await eventually(() => expect(outages.faultOf('acme')).toContain(FAULT));
  api.remove();
  await eventually(() => expect(outages.faultOf('acme')).toBeNull());
});
