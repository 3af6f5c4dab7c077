import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { QuotaReachedError, RetryableError } from '../../../base/errors.ts';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import type { KubernetesObject } from '../../../gitops/kubernetes/client/kinds.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { makeAccount } from '../../support/kubernetes/account.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { endingAtOnce, importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
const AUTH = 's3cret-auth-t0ken';

const configured = (manifest: LoadedManifest, env: string): LoadedManifest => ({
  ...manifest,
  config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}&auth=${AUTH}`).toString('base64')),
});

interface PodTemplate {
  readonly template: { readonly spec: object };
}

const NO_NODE = { nodeSelector: { 'shops.test/none': 'here' } };

/** The Deployment with pods that no node takes. */
function homeless(object: KubernetesObject): KubernetesObject {
  const spec = object.spec as PodTemplate; // as the renderer makes it
  const own = { ...spec.template.spec, ...NO_NODE };
  return { ...object, spec: { ...spec, template: { ...spec.template, spec: own } } };
}

/** A pod that takes the rest of a client's quota, beside the pods of `acme`. */
const ROOMY = {
  name: 'roomy',
  spec: {
    ...NO_NODE,
    securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'roomy',
        image: 'tag-server.test/tag-server:1',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        resources: {
          requests: { cpu: '1m', memory: '1Mi' },
          limits: { cpu: '3500m', memory: '1Mi' },
        },
      },
    ],
  },
} as const;

describeWith(['kubernetes', 'root'], 'a rollout that fails or waits', () => {
  let cluster: Cluster;
  let sites: SitesCluster;
  let runs: SiteRuns;
  let progressSeconds = 600;
  let isHomeless = false;
  const acme = configured(loadedManifest('acme-shop', 0), '1');
  const namespace = `tagyard-shops-${acme.client}`;
  const kubectl = (...args: string[]) => cluster.kubectl('--namespace', namespace, ...args);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await importTagServer(cluster);
    sites = await openSites({
      kubeconfig: await makeAccount(cluster),
      identity: { instance: 'shops', host: 'tag-1' },
      deployment: (object) => {
        const own = endingAtOnce(isHomeless ? homeless(object) : object);
        return { ...own, spec: { ...(own.spec as object), progressDeadlineSeconds: progressSeconds } };
      },
    });
    runs = new SiteRuns(sites);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    expect((await runs.run(acme)).errors).toEqual([]);
  });

  /** What the ready processing pods answer. */
  async function answers(): Promise<string[]> {
    const found = JSON.parse(
      await kubectl('get', 'pods', '--selector', 'tagyard/role=processing', '--output', 'json'),
    );
    const ready = found.items.filter(
      (pod: {
        metadata: { deletionTimestamp?: string };
        status: { containerStatuses?: { ready: boolean }[] };
      }) =>
        pod.metadata.deletionTimestamp === undefined &&
        pod.status.containerStatuses?.every((one) => one.ready),
    );
    return await Promise.all(
      ready.map((pod: { metadata: { name: string } }) =>
        kubectl('exec', pod.metadata.name, '--', '/bin/busybox', 'cat', '/tmp/web/index.html'),
      ),
    );
  }

  /** The previous pods serve, and the Deployment has their template again. */
  async function servesOn(): Promise<void> {
    await eventually(async () => {
      const found = await answers();
      expect(found).toHaveLength(2);
      expect(found.filter((answer) => !answer.includes('env=1'))).toEqual([]);
      const { changes } = await runs.plan(acme);
      // A Secret that no ReplicaSet needs any more may be removed.
      expect(
        changes.filter(({ op, target }) => op === 'create' || (op !== 'delete' && target === 'objects')),
      ).toEqual([]);
    }, WAIT);
  }

  const messageOf = (errors: readonly Error[]) => errors.map(({ message }) => message).join('\n');

  test('says what the tag server has printed, without secrets, and an old pod can still start', async () => {
    const failing = runs.run(configured(acme, 'broken'));
    await eventually(async () => {
      const sets = await kubectl('get', 'pods', '--selector', 'tagyard/role=processing', '--output', 'name');
      expect(sets.trim().split('\n').length).toBeGreaterThan(2);
    }, WAIT);
    const old = await kubectl(
      'get',
      'pods',
      '--selector=tagyard/role=processing',
      '--field-selector=status.phase=Running',
      '--sort-by=.metadata.creationTimestamp',
      '--output=jsonpath={.items[0].metadata.name}',
    );
    await kubectl('delete', 'pod', old, '--grace-period=1', '--wait=false');
    const { errors } = await failing;
    expect(messageOf(errors)).toContain('the tag server ends again and again: exit code 1: server.js');
    expect(messageOf(errors)).toContain('the previous pods continue to serve');
    expect(messageOf(errors)).not.toContain(AUTH);
    await servesOn();
  });

  test('says that there is nothing to go back to if it is the first one; its site can be removed nevertheless', async () => {
    const { errors } = await runs.run(acme, configured(loadedManifest('new-shop', 1), 'broken'));
    expect(messageOf(errors)).toContain('there is no earlier template to go back to');
    expect(messageOf(errors)).not.toContain('continue to serve');
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await kubectl('get', 'deployments', '--output', 'name')).not.toContain('new-shop');
    await servesOn();
  });

  test('says that an image can’t be pulled', async () => {
    const { errors } = await runs.run({ ...acme, image: `127.0.0.1:9/tag-server@sha256:${'b'.repeat(64)}` });
    expect(messageOf(errors)).toMatch(/the image can’t be pulled: .*127\.0\.0\.1:9/s);
    expect(messageOf(errors)).toContain('the previous pods continue to serve');
    await servesOn();
  });

  test('names a quota that is used up', async () => {
    // A pod of an earlier rollout that ends would make room in the quota.
    await eventually(async () => {
      const state = '{.metadata.deletionTimestamp}{.status.conditions[?(@.type=="Ready")].status}';
      const pods = await kubectl('get', 'pods', '--output', `jsonpath={range .items[*]}${state}{"\\n"}{end}`);
      expect(pods.trim().split('\n')).toEqual(['True', 'True', 'True']);
    }, WAIT);
    await kubectl('create', 'quota', 'theirs', '--hard=pods=3');
    await eventually(async () => {
      const pods = 'jsonpath={.status.used.pods} of {.status.hard.pods}';
      expect(await kubectl('get', 'quota', 'theirs', '--output', pods)).toBe('3 of 3');
    });
    try {
      const { errors } = await runs.run(configured(acme, '2'));
      expect(errors.some((error) => error instanceof QuotaReachedError)).toBe(true);
      expect(messageOf(errors)).toMatch(/a quota of the namespace is used up: .*exceeded quota: theirs/);
      await servesOn();
    } finally {
      await kubectl('delete', 'quota', 'theirs');
    }
    expect((await runs.run(configured(acme, '2'))).errors).toEqual([]);
  });

  /** Uses up the client's quota with one pod, as ending pods do until they are gone. */
  async function takeRoom(): Promise<void> {
    const { name, spec } = ROOMY;
    onTestFinished(giveRoom);
    // Until pods of earlier rollouts are gone, they take some of the quota.
    await eventually(
      () => cluster.create({ apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec }),
      WAIT,
    );
  }
  async function giveRoom(): Promise<void> {
    await kubectl('delete', 'pod', ROOMY.name, '--ignore-not-found');
  }

  test('waits while pods that end take up the client’s own quota', async () => {
    await takeRoom();
    runs.progress.length = 0;
    const rolling = runs.run(configured(acme, '2'));
    await eventually(
      () => expect(runs.progress.join()).toContain('waits for room in the client’s quota'),
      WAIT,
    );
    await giveRoom();
    expect((await rolling).errors).toEqual([]);
    expect(runs.progress.at(-1)).toBe('');
  });

  test('may be tried again soon where the client’s own quota has no room until the deadline', async () => {
    await takeRoom();
    progressSeconds = 6;
    const { errors } = await runs.run(configured(acme, '2'));
    progressSeconds = 600;
    await giveRoom();
    expect(errors).toHaveLength(1);
    expect(errors[0]).toBeInstanceOf(RetryableError);
    expect(errors[0]).toMatchObject({ retryAfter: undefined });
    expect(messageOf(errors)).toMatch(
      /no room in the client’s quota until the deadline: .*exceeded quota: tagyard/,
    );
    expect(messageOf(errors)).toContain('the previous pods continue to serve');
    await servesOn();
  });

  test('names a policy of the cluster that refuses the pods', async () => {
    const name = 'no-new-pods.shops.test';
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingAdmissionPolicy',
          metadata: { name },
          spec: {
            matchConstraints: {
              resourceRules: [
                { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] },
              ],
            },
            validations: [{ expression: 'false', message: 'no new pods today' }],
          },
        },
        {
          apiVersion: 'admissionregistration.k8s.io/v1',
          kind: 'ValidatingAdmissionPolicyBinding',
          metadata: { name },
          spec: { policyName: name, validationActions: ['Deny'] },
        },
      ],
    });
    const trial = () =>
      cluster.kubectl('run', 'trial', '--image=tag-server.test/tag-server:1', '--dry-run=server');
    await eventually(() => expect(trial()).rejects.toThrow('no new pods today'), WAIT);
    const { errors } = await runs.run(configured(acme, '2'));
    expect(messageOf(errors)).toMatch(/the cluster refuses the pods: .*no new pods today/);
    const [answer] = await answers();
    expect(answer).toContain('env=1');
    await cluster.kubectl('delete', 'validatingadmissionpolicybinding,validatingadmissionpolicy', name);
    await eventually(async () => {
      expect(await trial().catch(String)).not.toContain('no new pods today');
    }, WAIT);
  });

  test('ends at the progress deadline, and says what keeps the pods from running', async () => {
    progressSeconds = 6;
    isHomeless = true;
    const { errors } = await runs.run(configured(acme, '2'));
    progressSeconds = 600;
    isHomeless = false;
    expect(messageOf(errors)).toContain('no node takes a pod');
    await servesOn();
  });

  test('is no longer waited for once a newer revision changes the site; the newer one is rolled out', async () => {
    isHomeless = true;
    const newer = new AbortController();
    const held = runs.runUntil(newer.signal, [configured(acme, '3')]);
    await eventually(async () => {
      const pods = await kubectl(
        'get',
        'pods',
        '--field-selector',
        'status.phase=Pending',
        '--output',
        'name',
      );
      expect(pods).toContain(`tag-${acme.site}-processing`);
    }, WAIT);
    await eventually(() => expect(runs.progress.at(-1)).toContain('no node takes a pod'), WAIT);
    newer.abort();
    expect((await held).errors).toEqual([]);
    isHomeless = false;
    expect((await runs.run(configured(acme, '4'))).errors).toEqual([]);
    for (const answer of await answers()) expect(answer).toContain('env=4');
  });
});
