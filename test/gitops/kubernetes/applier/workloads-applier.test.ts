import type { IncomingMessage, ServerResponse } from 'node:http';
import { json } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../../base/errors.ts';
import { formatMark } from '../../../../base/ownership.ts';
import { openCluster } from '../../../../gitops/kubernetes/applier/cluster.ts';
import { kubernetesSettings } from '../../../../gitops/kubernetes/applier/settings.ts';
import { workloadsApplier } from '../../../../gitops/kubernetes/applier/workloads-applier.ts';
import type { KubernetesObject } from '../../../../gitops/kubernetes/client/kinds.ts';
import { openedScripted } from '../../../support/kubernetes/scripted-client.ts';
import { loadedManifest } from '../../../support/manifest.ts';

const REFUSED = { type: 'ReplicaFailure', status: 'True', message: 'pods "x" is forbidden' };
const LATE = { type: 'Progressing', status: 'False', reason: 'ProgressDeadlineExceeded' };

const IDENTITY = { instance: 'test', host: 'tag-1' };
const NO_ROOM = { ...REFUSED, message: 'pods "x" is forbidden: exceeded quota: own, requested: pods=1' };
const OWN_QUOTA = JSON.stringify({
  metadata: {
    ...{ name: 'own', namespace: 'sites', uid: 'q', resourceVersion: '1' },
    annotations: { 'tagyard/mark': formatMark(IDENTITY, '-', '0123456789abcdef') },
  },
});

/**
 * An API server that gives each applied Deployment these conditions, can't list ReplicaSets, and has the quota of
 * the client.
 */
class FailingServer {
  readonly #conditions: readonly object[];
  #watch: ServerResponse | null = null;
  /** The last event; empty: none. A watch that is opened later begins with it. */
  #event = '';
  #version = 1;

  constructor(conditions: readonly object[]) {
    this.#conditions = conditions;
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
      const items = pathname.endsWith('/resourcequotas') ? OWN_QUOTA : '';
      response.end(`{"metadata":{"resourceVersion":"1"},"items":[${items}]}`);
    }
  };

  #applied({ metadata, ...rest }: KubernetesObject): string {
    this.#version += 1;
    const { name, ...more } = metadata;
    const resourceVersion = String(this.#version);
    const object = JSON.stringify({
      ...rest,
      metadata: { name, uid: 'u', resourceVersion, generation: 1, ...more },
      status: { observedGeneration: 1, conditions: this.#conditions },
    });
    this.#event = `{"type":"MODIFIED","object":${object}}`;
    this.#watch?.write(`${this.#event}\n`);
    return object;
  }
}

const ESCALATES = [RetryableError, RetryableError, TerminalError];
const IS_RETRIED = [RetryableError, RetryableError, RetryableError];

test.for([
  ['whose pods are refused', [REFUSED], 'the cluster refuses the pods: .*', ESCALATES],
  [
    'that is late, and whose pods can’t be read',
    [LATE],
    'no progress until its deadline; its pods can’t be read: .*etcd is away',
    ESCALATES,
  ],
  // The template isn't at fault.
  ['that has no room in the client’s quota', [LATE, NO_ROOM], 'no room in the client’s quota .*', IS_RETRIED],
] as const)(
  'a rollout %s is reported as failed, even if the rollback fails',
  async ([, conditions, cause, kinds]) => {
    await using stack = new AsyncDisposableStack();
    const { kubeconfig } = stack.use(await openedScripted(new FailingServer(conditions).answer));
    const cluster = await openCluster(
      kubernetesSettings.parse({ KUBECONFIG: kubeconfig, KUBERNETES_NAMESPACE: 'sites' }),
      {
        identity: IDENTITY,
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
    for (const kind of kinds) {
      const error = await apply().catch((thrown: unknown) => thrown);
      expect(error).toMatchObject(failed);
      expect(error).toBeInstanceOf(kind);
    }
  },
);
