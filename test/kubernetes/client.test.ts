import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openKubernetes } from '../../gitops/kubernetes/client/client.ts';
import type { KubernetesClient } from '../../gitops/kubernetes/client/contract.ts';
import type { KubernetesObject, ObjectAddress } from '../../gitops/kubernetes/client/kinds.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { SilentProxy } from '../support/kubernetes/silent-proxy.ts';
import { movableClock } from '../support/movable-clock.ts';

const OURS = { manager: 'tagyard', force: false };
const ALL = { kind: 'Service', labels: 'test=client' } as const;

const limit = () => AbortSignal.timeout(60_000);
const at = (name: string, namespace = 'default'): ObjectAddress => ({ kind: 'Service', namespace, name });
const service = (name: string, { port = 80, namespace = 'default' } = {}): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace, labels: { test: 'client' } },
  spec: { ports: [{ name: 'web', port, protocol: 'TCP' }] },
});

describeWith(['kubernetes', 'root'], 'the client of the API server', () => {
  let cluster: Cluster;
  let client: KubernetesClient;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 0 });
    client = await openKubernetes({ kubeconfig: cluster.kubeconfig }, { pageSize: 2 });
  });
  afterAll(async () => {
    await client?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  const apply = (object: KubernetesObject) => client.apply(object, OURS, limit());
  /** The administrator's requests for Services with this verb until now. */
  const calls = (verb: string) =>
    cluster
      .requests()
      .filter((one) => one.user === 'admin' && one.resource === 'services' && one.verb === verb);
  /** A kubeconfig with another user or another way to the server. */
  async function kubeconfig(name: string, change: { user?: object; cluster?: object }): Promise<string> {
    const config = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8'));
    if (change.user !== undefined) config.users[0].user = change.user;
    Object.assign(config.clusters[0].cluster, change.cluster);
    const path = join(cluster.folder, name);
    await writeFile(path, JSON.stringify(config));
    return path;
  }
  async function account(name: string): Promise<string> {
    await cluster.kubectl('create', 'serviceaccount', name);
    return await cluster.kubectl('create', 'token', name);
  }

  describe('by its calls', () => {
    test('applies an object, reads it, lists it and deletes it, and a watched copy follows', async () => {
      const copy = client.watched(ALL);
      await copy.ready(limit());
      expect([...copy.objects.keys()]).toEqual([]);
      const { object, warnings } = await apply(service('one'));
      expect(warnings).toEqual([]);
      const { uid = '', resourceVersion = '' } = object.metadata;
      await copy.reached(at('one'), resourceVersion, limit());
      const stored = await client.get(at('one'), limit());
      expect(stored?.metadata).toEqual(object.metadata);
      expect(copy.objects.get('default/one')).toEqual(stored);
      expect((await client.list(ALL, limit())).items).toEqual([stored]);
      await client.delete(at('one'), uid, limit());
      await eventually(() => expect(copy.objects.size).toBe(0));
      expect(await client.get(at('one'), limit())).toBeNull();
      expect(copy.fault).toBeNull();
      await copy.close();
    });

    test('stores nothing in a dry run, and refuses members that the schema lacks', async () => {
      await client.apply(service('dry'), { ...OURS, dryRun: true }, limit());
      expect(await client.get(at('dry'), limit())).toBeNull();
      const wrong = { ...service('dry'), spec: { ports: [{ port: 80, prot: 'TCP' }] } };
      const error = await apply(wrong).catch((one: unknown) => one);
      expect(error).toMatchObject({ name: 'KubernetesRefusal', reason: 'invalid' });
      expect(String(error)).toMatch(/apply Service default\/dry: .*\.prot: field not declared in schema/);
    });

    test('returns the warnings of the API server', async () => {
      const { warnings } = await client.apply(
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: { name: 'warned', namespace: 'default' },
          spec: {
            selector: { matchLabels: { app: 'a' } },
            template: {
              metadata: { labels: { app: 'a' } },
              spec: {
                terminationGracePeriodSeconds: -1,
                containers: [{ name: 'a', image: 'a' }],
              },
            },
          },
        },
        { ...OURS, dryRun: true },
        limit(),
      );
      expect(warnings).toEqual([expect.stringMatching(/terminationGracePeriodSeconds: must be >= 0/)]);
    });

    test('takes over fields of another manager only by force', async () => {
      await client.apply(service('contested', { port: 81 }), { manager: 'another', force: false }, limit());
      await client.apply(
        {
          ...service('contested'),
          spec: { type: 'NodePort', ports: [{ name: 'w', port: 81, protocol: 'TCP' }] },
        },
        { manager: 'another', force: true },
        limit(),
      );
      const ours = {
        ...service('contested'),
        spec: { type: 'ClusterIP', ports: [{ name: 'w', port: 81, protocol: 'TCP' }] },
      };
      await expect(apply(ours)).rejects.toMatchObject({
        reason: 'managed',
        message: expect.stringMatching(/other managers own \.spec\.type \(conflict with "another"\)/),
      });
      await client.apply(ours, { ...OURS, force: true }, limit());
      expect(await client.get(at('contested'), limit())).toMatchObject({ spec: { type: 'ClusterIP' } });
    });

    test('deletes an object only by uid', async () => {
      const { object: first } = await apply(service('again'));
      await client.delete(at('again'), first.metadata.uid ?? '', limit());
      expect(await client.get(at('again'), limit())).toBeNull();
      const { object: second } = await apply(service('again'));
      await client.delete(at('again'), first.metadata.uid ?? '', limit());
      expect((await client.get(at('again'), limit()))?.metadata.uid).toBe(second.metadata.uid);
      const patch = [{ op: 'add', path: '/metadata/labels/patched', value: 'yes' }];
      const patched = await client.patch(at('again'), patch, limit());
      expect(patched?.metadata.labels).toEqual({ test: 'client', patched: 'yes' });
      expect(await client.patch(at('nowhere'), patch, limit())).toBeNull();
    });

    test('reads a list in pages, and of Secrets only the metadata', async () => {
      const names = ['p1', 'p2', 'p3', 'p4', 'p5'];
      for (const name of names)
        await apply({ ...service(name), metadata: { name, namespace: 'default', labels: { page: '1' } } });
      const before = calls('list').length;
      const { items } = await client.list({ kind: 'Service', labels: 'page=1' }, limit());
      expect(items.map(({ metadata }) => metadata.name)).toEqual(names);
      expect(items[0]).toMatchObject({ apiVersion: 'v1', kind: 'Service' });
      await eventually(() => expect(calls('list').length - before).toBe(3));
      await cluster.kubectl('create', 'secret', 'generic', 'hidden', '--from-literal=a=b');
      const secrets = await client.list(
        { kind: 'Secret', fields: 'metadata.name=hidden', metadataOnly: true },
        limit(),
      );
      expect(secrets.items).toHaveLength(1);
      expect(secrets.items[0]).toMatchObject({ kind: 'Secret', metadata: { name: 'hidden' } });
      expect(secrets.items[0]).not.toHaveProperty('data');
    });
  });

  describe('with refusals and credentials', () => {
    test('distinguishes a missing right, which it names, from a full quota and a namespace that is being deleted', async () => {
      const token = await account('limited');
      await cluster.kubectl('create', 'namespace', 'full');
      await cluster.kubectl('create', 'quota', 'none', '--hard=count/services=0', '--namespace=full');
      await cluster.kubectl('create', 'namespace', 'ending');
      await cluster.apply({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'held', namespace: 'ending', finalizers: ['test.example/held'] },
      });
      await cluster.kubectl('delete', 'namespace', 'ending', '--wait=false');
      await cluster.kubectl(
        'create',
        'clusterrolebinding',
        'limited',
        '--clusterrole=edit',
        '--serviceaccount=default:limited',
      );
      await using own = {
        client: await openKubernetes({ kubeconfig: await kubeconfig('limited', { user: { token } }) }),
        [Symbol.asyncDispose]: () => own.client.close(),
      };
      const as = (namespace: string) => own.client.apply(service('mine', { namespace }), OURS, limit());
      await eventually(() => as('default'));
      await expect(as('full')).rejects.toMatchObject({
        name: 'KubernetesQuotaReached',
        reason: 'quota',
        message: expect.stringMatching(/exceeded quota: none/),
      });
      await eventually(() =>
        expect(as('ending')).rejects.toMatchObject({ name: 'KubernetesRetryable', reason: 'terminating' }),
      );
      await expect(as('missing')).rejects.toMatchObject({ name: 'KubernetesRetryable', reason: 'absent' });
      await cluster.kubectl('label', 'namespace', 'full', 'pod-security.kubernetes.io/enforce=restricted');
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'a', namespace: 'full' },
        spec: { containers: [{ name: 'a', image: 'a' }] },
      } as const;
      await expect(client.apply(pod, OURS, limit())).rejects.toMatchObject({
        name: 'KubernetesRefusal',
        reason: 'denied',
        message: expect.stringMatching(/violates PodSecurity "restricted/),
      });
      await cluster.kubectl('delete', 'clusterrolebinding', 'limited');
      await eventually(() =>
        expect(as('default')).rejects.toMatchObject({
          name: 'KubernetesRefusal',
          reason: 'forbidden',
          message: expect.stringMatching(
            /the account system:serviceaccount:default:limited may not patch "services" in API group "" in the namespace "default"\. Give it/,
          ),
        }),
      );
    });

    async function replaceToken(way: 'tokenFile' | 'exec'): Promise<void> {
      const [first, second] = [`${way}-first`.toLowerCase(), `${way}-second`.toLowerCase()];
      const file = join(cluster.folder, `${way}-token`);
      const store = (token: string) => {
        const credential = {
          apiVersion: 'client.authentication.k8s.io/v1',
          kind: 'ExecCredential',
          status: { token },
        };
        return writeFile(file, way === 'exec' ? JSON.stringify(credential) : `${token}\n`);
      };
      await store(await account(first));
      const exec = {
        apiVersion: 'client.authentication.k8s.io/v1',
        command: 'cat',
        args: [file],
        interactiveMode: 'Never',
      };
      const user = way === 'exec' ? { exec } : { tokenFile: file };
      const own = await openKubernetes({ kubeconfig: await kubeconfig(way, { user }) });
      const whoAmI = () =>
        own.raw('/api/v1/namespaces/default/services', limit()).catch((error: unknown) => String(error));
      expect(await whoAmI()).toMatch(`system:serviceaccount:default:${first}`);
      await store(await account(second));
      await cluster.kubectl('delete', 'serviceaccount', first);
      await eventually(async () => expect(await whoAmI()).toMatch(`system:serviceaccount:default:${second}`));
      await own.close();
    }

    test('reads the new token once one is replaced, from a file and from a program', async () => {
      // Both at once, because each takes ten seconds: the API server keeps its verdict on a token for so long.
      await Promise.all([replaceToken('tokenFile'), replaceToken('exec')]);
    });
  });

  describe('a watched copy', () => {
    /** A copy whose connections go through a proxy, and a clock that can be moved on. */
    async function proxied(name: string) {
      const { server } = JSON.parse(readFileSync(cluster.kubeconfig, 'utf8')).clusters[0].cluster;
      const proxy = await SilentProxy.to(server);
      const clock = movableClock();
      const way = { server: `https://127.0.0.1:${proxy.port}`, 'tls-server-name': 'kubernetes.default.svc' };
      const own = await openKubernetes({ kubeconfig: await kubeconfig(name, { cluster: way }) }, { clock });
      const copy = own.watched(ALL);
      await copy.ready(limit());
      return {
        proxy,
        clock,
        copy,
        async [Symbol.asyncDispose]() {
          await own.close();
          await proxy[Symbol.asyncDispose]();
        },
      };
    }

    test('continues after the API server was away', async () => {
      const copy = client.watched(ALL);
      await copy.ready(limit());
      const changes = copy.changes(limit())[Symbol.asyncIterator]();
      await cluster.restartApiServer(() => eventually(() => expect(copy.fault).not.toBeNull()));
      const { object } = await eventually(() => apply(service('after')));
      await copy.reached(at('after'), object.metadata.resourceVersion ?? '', limit());
      expect(copy.fault).toBeNull();
      expect((await changes.next()).value).toMatchObject({
        type: 'added',
        object: { metadata: { namespace: 'default', name: 'after' } },
      });
      await copy.close();
    });

    test('notices a connection that brings nothing any more, by its silence or because a caller waits', async () => {
      await using one = await proxied('silent');
      await eventually(() => expect(one.proxy.accepted).toBe(2));
      const lists = calls('list').length;
      one.proxy.silence();
      const { object } = await apply(service('waited'));
      const reached = one.copy.reached(at('waited'), object.metadata.resourceVersion ?? '', limit());
      one.clock.advance(10_000);
      await reached;
      one.proxy.silence();
      await apply(service('silent'));
      one.clock.advance(150_000);
      await eventually(() => expect(one.copy.objects.has('default/silent')).toBe(true));
      // The watch continued from its version; half an hour later all is listed again, whatever the watch has shown.
      expect(calls('list').length).toBe(lists);
      one.clock.advance(34 * 60_000);
      await eventually(() => expect(calls('list').length).toBe(lists + 1));
    });

    test('lists again when its version is no longer kept', async () => {
      await using one = await proxied('expired');
      one.proxy.silenceAll();
      const { object } = await apply(service('missed'));
      const revision = object.metadata.resourceVersion ?? '';
      const lists = calls('list').length;
      await cluster.restartApiServer(() =>
        fetch(`${cluster.store}/v3/kv/compaction`, {
          method: 'POST',
          body: JSON.stringify({ revision, physical: true }),
        }),
      );
      one.proxy.reopen();
      const reached = one.copy.reached(at('missed'), revision, limit());
      one.clock.advance(10_000);
      await reached;
      await eventually(() => expect(calls('list').length - lists).toBe(1));
    });
  });
});
