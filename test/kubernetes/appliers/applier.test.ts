import { afterAll, beforeAll, expect, test } from 'vitest';
import { RetryableError, TerminalError } from '../../../base/errors.ts';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { ACCOUNT, grant, makeAccount } from '../../support/kubernetes/account.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { endingAtOnce, importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const IDENTITY = { instance: 'shops', host: 'tag-1' };
const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
const OTHER_CLIENT = '0d4c2f3a-55b1-4a0e-9d0b-7a8f0c1d2e3f';
const NONE = { changes: [], conflicts: [] };

const configured = (manifest: LoadedManifest, env: string): LoadedManifest => ({
  ...manifest,
  config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}&auth=s3cret-auth-t0ken`).toString('base64')),
});
const redundant = (manifest: LoadedManifest): LoadedManifest => ({
  ...manifest,
  resources: {
    ...manifest.resources,
    processing: { ...manifest.resources.processing, replicas: 2 },
  },
});

describeWith(['kubernetes', 'root'], 'a run in a cluster', () => {
  let cluster: Cluster;
  let account: string;
  let sites: SitesCluster;
  let runs: SiteRuns;
  let ordinal = 5;
  let endsAtOnce = false;
  const lines: object[] = [];
  const acme = configured(redundant(loadedManifest('acme-shop', 0)), '1');
  const changed = configured(acme, '2');
  const namespace = `tagyard-shops-${acme.client}`;
  const PROCESSING = 'tag-acme-shop-processing';
  const kubectl = (...args: string[]) => cluster.kubectl('--namespace', namespace, ...args);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 2 });
    await importTagServer(cluster);
    await cluster.kubectl(
      'run',
      'asker',
      '--image=tag-server.test/tag-server:1',
      '--image-pull-policy=Never',
      '--command',
      '--',
      '/bin/busybox',
      'sleep',
      '2147483647',
    );
    account = await makeAccount(cluster);
    const log = { info: (fields: object) => void lines.push(fields), warn() {} };
    sites = await openSites({
      kubeconfig: account,
      identity: IDENTITY,
      log,
      ordinal: async () => ordinal,
      deployment: (object) => (endsAtOnce ? endingAtOnce(object) : object),
    });
    runs = new SiteRuns(sites);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  /** What the site's Service answers to a pod of another namespace; `lost`: an error, or no answer within a second. */
  async function asked(times = 1): Promise<string[]> {
    const ip = await kubectl('get', 'service', PROCESSING, '--output', 'jsonpath={.spec.clusterIP}');
    const { processing } = acme.ports;
    const ask = `/bin/busybox timeout 1 /bin/busybox wget -qO- http://${ip}:${processing}/ || echo lost`;
    const script = `i=0; while [ $i -lt ${times} ]; do ${ask}; /bin/busybox usleep 50000; i=$((i+1)); done`;
    const answer = await cluster.kubectl('exec', 'asker', '--', '/bin/busybox', 'sh', '-c', script);
    return answer.trim().split('\n');
  }
  /** Resolves once the Service answers with this configuration: pods that end still serve for some seconds. */
  const serves = (env: string) =>
    eventually(async () => expect((await asked())[0]).toContain(`env=${env}`), WAIT);

  test('brings a site up with what it needs, and its Service answers', async () => {
    const { changes, errors } = await runs.run(acme);
    expect(errors).toEqual([]);
    expect(new Set(changes.map(({ op }) => op))).toEqual(new Set(['create']));
    await serves('1');
    expect(await runs.plan(acme)).toEqual(NONE);
    const enforced = await cluster.kubectl(
      'get',
      'namespace',
      namespace,
      '--output',
      'jsonpath={.metadata.labels}',
    );
    expect(enforced).toContain('"pod-security.kubernetes.io/enforce":"restricted"');
  });

  test('makes no call while there is nothing to do', async () => {
    // The site's start still changes its objects. This pass observes that before calls are counted.
    await runs.plan(acme);
    const own = () => cluster.requests().filter(({ user }) => user === ACCOUNT).length;
    const before = own();
    expect(await runs.run(acme)).toEqual({ ...NONE, errors: [] });
    expect(own()).toBe(before);
  });

  test('rolls a changed configuration out without loss, and back with the previous Secret', async () => {
    const requests = asked(150);
    expect((await runs.run(changed)).errors).toEqual([]);
    await serves('2');
    const answers = await requests;
    expect(answers.filter((answer) => !answer.includes('env='))).toEqual([]);
    const back = await runs.run(acme);
    expect(back.errors).toEqual([]);
    expect(back.changes.filter(({ op }) => op === 'create')).toEqual([]);
    await serves('1');
    // From here on, no test is about pods that serve while they end.
    endsAtOnce = true;
    // New appliers, because the previous ones keep what they have rendered.
    runs = new SiteRuns(sites);
    expect((await runs.run(acme)).errors).toEqual([]);
  });

  test('removes a container that others have added; keeps a label of theirs, and names it in the log', async () => {
    const container = { name: 'sidecar', image: 'tag-server.test/tag-server:1' };
    const patch = JSON.stringify({ spec: { template: { spec: { containers: [container] } } } });
    await kubectl('label', 'deployment', PROCESSING, 'team=shops');
    await eventually(() =>
      expect(
        [...sites.copies.of('Deployment')].some(({ metadata }) => metadata.labels?.team === 'shops'),
      ).toBe(true),
    );
    expect(await runs.plan(acme)).toEqual(NONE);
    expect(JSON.stringify(lines)).toContain('metadata.labels.team (by kubectl-label)');
    const named = lines.length;
    expect(await runs.plan(acme)).toEqual(NONE);
    expect(lines).toHaveLength(named);
    const seen = runs.appliers[0]?.events?.(AbortSignal.timeout(60_000))[Symbol.asyncIterator]();
    const event = seen?.next();
    await kubectl('patch', 'deployment', PROCESSING, '--patch', patch);
    expect((await event)?.done).toBe(false);
    await eventually(async () => {
      const { changes } = await runs.plan(acme);
      expect(changes[0]?.observed?.found).toContain('containers[sidecar] (by kubectl-patch)');
    });
    // Others who change the object all the time don't keep it from being repaired.
    let isRepaired = false;
    const storm = async () => {
      for (let count = 0; !isRepaired; count += 1) {
        await kubectl('annotate', 'deployment', PROCESSING, `count=${count}`, '--overwrite');
      }
    };
    const storms = [storm(), storm()];
    const { errors } = await runs.run(acme);
    isRepaired = true;
    await Promise.all(storms);
    expect(errors).toEqual([]);
    const left = JSON.parse(await kubectl('get', 'deployment', PROCESSING, '--output', 'json'));
    expect(left.spec.template.spec.containers).toHaveLength(1);
    expect(left.metadata.labels.team).toBe('shops');
    expect(await runs.plan(acme)).toEqual(NONE);
  });

  test('plans nothing for an annotation that the cluster’s controllers haven’t seen yet', async () => {
    await cluster.withoutControllers(async () => {
      await kubectl('annotate', 'deployment', PROCESSING, 'seen=no');
      await eventually(() =>
        expect(
          [...sites.copies.of('Deployment')].some(({ metadata }) => metadata.annotations?.seen === 'no'),
        ).toBe(true),
      );
      expect(await runs.plan(acme)).toEqual(NONE);
    });
  });

  test('repairs a changed field, a site without pods, and a Deployment and a policy that were deleted', async () => {
    await kubectl('set', 'env', `deployment/${PROCESSING}`, 'PORT=1');
    await kubectl('delete', 'networkpolicy', 'tagyard-deny');
    await eventually(async () => {
      const { changes } = await runs.plan(acme);
      expect(changes.map(({ observed }) => observed?.found).join()).toMatch(/missing.*env\[PORT\]\.value/);
    });
    expect((await runs.run(acme)).errors).toEqual([]);
    await kubectl('get', 'networkpolicy', 'tagyard-deny');
    await kubectl('scale', 'deployment', PROCESSING, '--replicas=0');
    await kubectl('delete', 'deployment', 'tag-acme-shop-preview');
    // The preview's old ReplicaSets end with its Deployment. Then no ReplicaSet needs the other configuration's Secret.
    await eventually(async () => {
      const { changes } = await runs.plan(acme);
      expect(changes.map(({ op, key }) => `${op} ${key.replace(/[0-9a-f]{8,}$/, '')}`).sort()).toEqual([
        `create ${namespace}/Deployment/tag-acme-shop-preview`,
        `delete ${namespace}/Secret/tag-acme-shop-`,
        `update ${namespace}/Deployment/${PROCESSING}`,
      ]);
    }, WAIT);
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await runs.plan(acme)).toEqual(NONE);
    await serves('1');
    const replicas = await kubectl('get', 'deployment', PROCESSING, '--output', 'jsonpath={.spec.replicas}');
    expect(replicas).toBe('2');
  });

  test('logs a label of others again after the object was made anew', async () => {
    const service = ['service', 'tag-acme-shop-preview'];
    const labelled = async () => {
      await kubectl('label', ...service, 'team=shops');
      await eventually(async () => {
        const before = lines.length;
        expect(await runs.plan(acme)).toEqual(NONE);
        expect(JSON.stringify(lines.slice(before))).toContain(`${service[1]}`);
      }, WAIT);
    };
    await labelled();
    await kubectl('delete', ...service);
    await eventually(async () => expect((await runs.plan(acme)).changes).toHaveLength(1), WAIT);
    expect((await runs.run(acme)).errors).toEqual([]);
    await labelled();
  });

  test('never takes pods from a site: each apply states their number until others set it', async () => {
    const [replicas, generation] = ['{.spec.replicas}', '{.metadata.generation}'];
    const get = (path: string) =>
      kubectl('get', 'deployment', PROCESSING, '--show-managed-fields', '--output', `jsonpath=${path}`);
    const setBy = '{.metadata.managedFields[?(@.fieldsV1.f:spec.f:replicas)].manager}';
    expect(await get(setBy)).toBe('tagyard');
    const before = Number(await get(generation));
    expect((await runs.run(changed)).errors).toEqual([]);
    // The Deployment was changed once only, so the number never had another value.
    expect([await get(replicas), Number(await get(generation))]).toEqual(['2', before + 1]);
    const version = await get('{.metadata.resourceVersion}');
    await kubectl('annotate', 'deployment', PROCESSING, 'stale=yes');
    const stale = { name: PROCESSING, namespace, resourceVersion: version };
    const object = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: stale } as const;
    const options = { manager: 'tagyard', force: true };
    await expect(sites.client.apply(object, options, AbortSignal.timeout(30_000))).rejects.toMatchObject({
      reason: 'changed',
    });
    await kubectl('scale', 'deployment', PROCESSING, '--replicas=3');
    expect(await get(setBy)).not.toContain('tagyard');
    expect((await runs.run(acme)).errors).toEqual([]);
    // The autoscaler's maximum is two.
    await eventually(async () => expect(await get(replicas)).toBe('2'), WAIT);
    expect(await get(setBy)).not.toContain('tagyard');
  });

  test('refuses to apply an older revision than an object has', async () => {
    ordinal = 4;
    const { errors } = await runs.run(configured(acme, '3'));
    ordinal = 6;
    expect(errors.map(String).join()).toContain('newer revision (5) than this provisioner (4)');
    expect((await runs.run(acme)).errors).toEqual([]);
  });

  test('names the right that was taken away, and applies the change once it is given back', async () => {
    await grant(cluster, { but: { resource: 'deployments', verb: 'patch' } });
    const { errors } = await eventually(async () => {
      const result = await runs.run(changed);
      expect(result.errors).not.toEqual([]);
      return result;
    });
    expect(errors[0]).toBeInstanceOf(TerminalError);
    expect(errors[0]?.message).toMatch(/may not patch "deployments" in API group "apps"/);
    await serves('1');
    await grant(cluster);
    await eventually(async () => expect((await runs.run(changed)).errors).toEqual([]), WAIT);
  });

  test('waits for a namespace that is being deleted, and makes the site again', async () => {
    // A finalizer holds the namespace itself. If it held an object in the namespace, the namespace's controller would
    // notice the release only at its next check, up to eight seconds later.
    const hold = (finalizers: readonly string[]) => {
      const patch = JSON.stringify({ metadata: { finalizers } });
      return cluster.kubectl('patch', 'namespace', namespace, '--type=merge', '--patch', patch);
    };
    await hold(['shops.test/held']);
    await cluster.kubectl('delete', 'namespace', namespace, '--wait=false');
    const failed = await eventually(async () => {
      const { errors } = await runs.run(acme);
      expect(errors.map(String).join()).toContain('is being deleted');
      return errors;
    }, WAIT);
    expect(failed.some((error) => error instanceof RetryableError)).toBe(true);
    await hold([]);
    await eventually(async () => expect((await runs.run(acme)).errors).toEqual([]), WAIT);
    await serves('1');
  });

  test('removes a site and its namespace, but no namespace with an object of others', async () => {
    const other = { ...loadedManifest('other-shop', 1), client: OTHER_CLIENT };
    expect((await runs.run(acme, other)).errors).toEqual([]);
    await cluster.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'theirs', namespace } });
    // An Ingress makes no pod or other object, so only the Ingress itself can keep the namespace.
    const ingress = { name: 'theirs', namespace };
    const backend = { service: { name: PROCESSING, port: { number: acme.ports.processing } } };
    const spec = { defaultBackend: backend };
    await cluster.create({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: ingress, spec });
    expect((await runs.run()).errors).toEqual([]);
    await eventually(async () => {
      expect(await runs.plan()).toEqual(NONE);
      const left = await cluster.kubectl('get', 'namespaces', '--output', 'name');
      expect(left).not.toContain(OTHER_CLIENT);
      expect(left).toContain(namespace);
    }, WAIT);
    const objects = await kubectl('get', 'deployment,secret,service', '--output', 'name');
    expect(objects.trim()).toBe('');
    expect(JSON.stringify(lines)).toContain('ConfigMap/theirs');
    await kubectl('delete', 'configmap', 'theirs');
    const kept = async () => {
      await runs.plan();
      await sites.clients.ended();
      return lines.map((line) => JSON.stringify(line)).filter((line) => line.includes('"keeping":'));
    };
    await eventually(async () => expect((await kept()).at(-1)).toContain('["Ingress/theirs"]'), WAIT);
    // What keeps the namespace is logged once.
    const logged = lines.length;
    await kept();
    expect(lines).toHaveLength(logged);
    await kubectl('delete', 'ingress', 'theirs');
    const isRemoved = () =>
      eventually(async () => {
        await runs.plan();
        expect(await cluster.kubectl('get', 'namespaces', '--output', 'name')).not.toContain(namespace);
      }, WAIT);
    await isRemoved();
    // What keeps another namespace of the same name is logged again.
    await eventually(() => sites.clients.ensure(acme, false, AbortSignal.timeout(60_000)), WAIT);
    await cluster.create({ apiVersion: 'networking.k8s.io/v1', kind: 'Ingress', metadata: ingress, spec });
    await eventually(async () => {
      await kept();
      expect(JSON.stringify(lines.slice(logged))).toContain('["Ingress/theirs"]');
    }, WAIT);
    await kubectl('delete', 'ingress', 'theirs');
    await isRemoved();
  });
});
