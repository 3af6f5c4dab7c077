import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { FailedPreviews } from '../../../../gitops/kubernetes/applier/failed-previews.ts';
import { Copies } from '../../../../gitops/kubernetes/applier/state/copies.ts';
import { ObjectSpec } from '../../../../gitops/kubernetes/applier/state/object-spec.ts';
import { WantedSpecs } from '../../../../gitops/kubernetes/applier/state/wanted-specs.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import { formatReport } from '../../../../gitops/kubernetes/delivery/report.ts';
import { eventually } from '../../../support/eventually.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';
import type { Answerer } from '../../../support/kubernetes/scripted-server.ts';

const NAMESPACE = 'sites';
const NAME = 'tag-acme-preview';

/** An API server whose objects change: watches get each change. */
class ChangingServer {
  readonly #watches = new Map<string, ServerResponse>();
  readonly #objects = new Map<string, object>();
  #version = 1;

  readonly answer = (request: { url?: string | undefined }, response: ServerResponse): void => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    const plural = pathname.slice(pathname.lastIndexOf('/') + 1);
    if (searchParams.get('watch') === 'true') {
      response.writeHead(200).write('\n');
      this.#watches.set(plural, response);
    } else {
      const items = [this.#objects.get(plural)].filter((one) => one !== undefined);
      const metadata = { resourceVersion: String(this.#version) };
      response.writeHead(200).end(JSON.stringify({ metadata, items }));
    }
  };

  set(plural: string, { metadata, ...rest }: Pick<KubernetesObject, 'metadata'> & object): void {
    this.#version += 1;
    const { name, ...more } = metadata;
    const resourceVersion = String(this.#version);
    const object = { metadata: { name, namespace: NAMESPACE, uid: name, resourceVersion, ...more }, ...rest };
    this.#objects.set(plural, object);
    this.#watches.get(plural)?.write(`${JSON.stringify({ type: 'MODIFIED', object })}\n`);
  }

  get isWatched(): boolean {
    return this.#watches.size === 2;
  }
}

/** The Deployment as it was applied at this minute; `refusal`: why it gets no pod. */
function preview(minute: number, refusal: string | null) {
  const time = `2026-01-01T00:0${minute}:00Z`;
  return {
    metadata: { name: NAME, managedFields: [{ manager: 'tagyard', operation: 'Apply' as const, time }] },
    spec: { replicas: 1 },
    status: {
      conditions: refusal === null ? [] : [{ type: 'ReplicaFailure', status: 'True', message: refusal }],
    },
  };
}

/** The Lease of a gateway at which this many starts of the preview server have failed. */
function lease(number: number) {
  const failed = { [`${NAMESPACE}/${NAME}`]: { number, reason: '' } };
  const report = { delivered: 'd', generation: '1', ready: true, refused: {}, unused: {}, failed };
  return { metadata: { name: 'gateway-1', annotations: formatReport(report) } };
}

/** The failed previews of a cluster that wants this preview server. */
async function openedPreviews(stack: AsyncDisposableStack, answer: Answerer) {
  const { client } = stack.use(await openedScripted(answer));
  const log = { info() {}, warn() {} };
  const place = { client, identity: { instance: 'test', host: 'tag-1' }, namespace: NAMESPACE, log };
  const copies = new Copies({ ...place, selection: { kinds: ['Deployment'], labels: '' } });
  const reports = new Copies({ ...place, selection: { kinds: ['Lease'], labels: '' } });
  const wanted = new WantedSpecs();
  const previews = new FailedPreviews({ ...place, copies, wanted, reports });
  stack.defer(() => previews.close());
  const metadata = { name: NAME, namespace: NAMESPACE };
  const resources = {
    processing: { memory: '256m', cpus: 1, replicas: 1 },
    preview: { memory: '256m', cpus: 1, onDemand: true },
  };
  const manifest = { site: 'acme', client: 'one', resources };
  const options = { manifest, secrets: [], initialReplicas: 0, refusal: null };
  wanted.replace([new ObjectSpec({ apiVersion: 'apps/v1', kind: 'Deployment', metadata }, options)], null);
  return { previews, wanted };
}

test('failures in Leases that couldn’t be read are reported once they can be read', async () => {
  await using stack = new AsyncDisposableStack();
  const api = new ChangingServer();
  api.set('deployments', preview(1, 'pods "x" is forbidden: exceeded quota: theirs'));
  api.set('leases', lease(1));
  const broken = [Array.from({ length: 20 }, (_, number) => `gateway-${number}`)];
  const { previews } = await openedPreviews(stack, (request, response) => {
    const names = /leases\?(?!.*watch=true)/.test(request.url ?? '') ? broken.pop() : undefined;
    if (names === undefined) return api.answer(request, response);
    const items = names.map((name) => {
      const metadata = `{"name":"${name}","namespace":"${NAMESPACE}","uid":"${name}","resourceVersion":"3"}`;
      return `{"metadata":${metadata},"spec":{"a":}}`;
    });
    response.end(`{"metadata":{"resourceVersion":"3"},"items":[${items}]}`);
  });
  await eventually(() => expect(previews.messageOf('acme')).toContain('exceeded quota: theirs'));
  expect(broken).toEqual([]);
});

test('a cause is reported neither for a Deployment that was applied after it, nor for a removed site', async () => {
  await using stack = new AsyncDisposableStack();
  const api = new ChangingServer();
  api.set('deployments', preview(1, 'pods "x" is forbidden: exceeded quota: theirs'));
  api.set('leases', lease(1));
  const { previews, wanted } = await openedPreviews(stack, api.answer);
  await eventually(() => {
    expect(previews.messageOf('acme')).toContain('exceeded quota: theirs');
    expect(api.isWatched).toBe(true);
  });

  api.set('deployments', preview(2, null));
  await eventually(() => expect(previews.messageOf('acme')).toBeNull());
  api.set('leases', lease(2));
  await eventually(() => expect(previews.messageOf('acme')).toContain('no pod was ready within 55 seconds'));

  wanted.replace([], new Set(['another']));
  expect(previews.messageOf('acme')).not.toBeNull();
  wanted.replace([], new Set(['acme']));
  expect(previews.messageOf('acme')).toBeNull();
});
