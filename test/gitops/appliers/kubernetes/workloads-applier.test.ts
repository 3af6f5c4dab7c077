import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { openCluster } from '../../../../gitops/appliers/kubernetes/cluster.ts';
import { kubernetesSettings } from '../../../../gitops/appliers/kubernetes/settings.ts';
import { workloadsApplier } from '../../../../gitops/appliers/kubernetes/workloads-applier.ts';
import { RetryableError, TerminalError } from '../../../../gitops/base/errors.ts';
import type { KubernetesObject } from '../../../../gitops/clients/kubernetes/kinds.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const REFUSED = { type: 'ReplicaFailure', status: 'True', message: 'pods "x" is forbidden' };
const LATE = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' };

/** An API server that gives each Deployment that is applied this condition, and can't list ReplicaSets. */
class FailingServer {
  readonly #condition: object;
  #watch: ServerResponse | null = null;
  /** The last event; empty: none. A watch that is opened later begins with it. */
  #event = '';
  #version = 1;

  constructor(condition: object) {
    this.#condition = condition;
  }

  readonly answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://localhost');
    if (request.method === 'PATCH') {
      response.end(this.#applied((await json(request)) as KubernetesObject));
    } else if (pathname.endsWith('/replicasets')) {
      response.writeHead(500).end('{"kind":"Status","message":"etcd is away"}');
    } else if (searchParams.get('watch') === 'true') {
      const isOfDeployments = pathname.endsWith('/deployments');
      response.writeHead(200).write(isOfDeployments ? `${this.#event}\n` : '\n');
      if (isOfDeployments) this.#watch = response;
    } else {
      response.end('{"metadata":{"resourceVersion":"1"},"items":[]}');
    }
  };

  #applied({ metadata, ...rest }: KubernetesObject): string {
    this.#version += 1;
    const { name, ...more } = metadata;
    const resourceVersion = String(this.#version);
    const object = JSON.stringify({
      ...rest,
      metadata: { name, uid: 'u', resourceVersion, generation: 1, ...more },
      status: { observedGeneration: 1, conditions: [this.#condition] },
    });
    this.#event = `{"type":"MODIFIED","object":${object}}`;
    this.#watch?.write(`${this.#event}\n`);
    return object;
  }
}

test.for([
  ['of which the pods are refused', REFUSED, 'the cluster refuses the pods: .*'],
  ['that is late, and of which the pods can’t be read', LATE, 'its pods can’t be read: .*etcd is away'],
] as const)(
  'a rollout %s counts as failed and is reported, even if the way back fails',
  async ([, condition, cause]) => {
    await using stack = new AsyncDisposableStack();
    const { kubeconfig } = stack.use(await openedScripted(new FailingServer(condition).answer));
    const cluster = await openCluster(
      kubernetesSettings.parse({ KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: 'sites' }),
      {
        identity: { instance: 'test', host: 'tag-1' },
        log: { info() {}, warn() {} },
        ordinal: async () => null,
        gateway: null,
        originPort: 443,
        edition: () => '',
        times: { refusedMs: 0, readMs: 60_000, longestMs: 60_000 },
      },
    );
    stack.defer(() => cluster.close());
    const applier = workloadsApplier(cluster);
    const signal = AbortSignal.timeout(60_000);
    await cluster.copies.ready(signal);
    const [desired] = applier.desired(loadedManifest('acme'));
    if (desired === undefined) throw new Error('the site has no Deployment');
    const { target, site, key, summary } = desired;
    const apply = () => applier.apply({ target, site, key, op: 'create', summary, desired }, signal);
    const failed = {
      message: expect.stringMatching(`failed: ${cause}; couldn’t go back: .*etcd is away`),
      cause: expect.objectContaining({ reason: 'unavailable' }),
    };
    for (const kind of [RetryableError, RetryableError, TerminalError]) {
      const error = await apply().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed);
      expect(error).toBeInstanceOf(kind);
    }
  },
);
