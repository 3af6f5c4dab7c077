import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RetryableError } from '../../../base/errors.ts';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { ACCOUNT, makeAccount } from '../../support/kubernetes/account.ts';
import { callerAs } from '../../support/kubernetes/call-as.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { callOf, deleting, pathOf } from '../../support/kubernetes/rights.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { endingAtOnce, importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';
import { movableClock } from '../../support/movable-clock.ts';

const IDENTITY = { instance: 'shops', host: 'tag-1' };
const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
const NONE = { changes: [], conflicts: [] };
const HOUR = 3_600_000;

const configured = (manifest: LoadedManifest, env: string): LoadedManifest => ({
  ...manifest,
  config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}&auth=s3cret-auth-t0ken`).toString('base64')),
});

describeWith(['kubernetes', 'root'], 'the Secrets of sites, which the account can’t read', () => {
  let cluster: Cluster;
  let kubeconfig: string;
  let sites: SitesCluster;
  let runs: SiteRuns;
  const clock = movableClock();
  const resources = { processing: { replicas: 1 } };
  const acme = configured(loadedManifest('acme-shop', 0, { resources }), '1');
  const changed = configured(acme, '2');
  const namespace = `tagyard-shops-${acme.client}`;
  const kubectl = (...args: string[]) => cluster.kubectl('--namespace', namespace, ...args);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await importTagServer(cluster);
    kubeconfig = await makeAccount(cluster);
    sites = await open();
    runs = new SiteRuns(sites);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  const open = () => openSites({ kubeconfig, identity: IDENTITY, clock, deployment: endingAtOnce });
  const nameOf = (manifest: LoadedManifest): string =>
    sites.render(manifest).find(({ kind }) => kind === 'Secret')?.metadata.name ?? '';
  const secretNames = async () => {
    const found = await kubectl('get', 'secrets', '--output', 'jsonpath={.items[*].metadata.name}');
    return found.split(' ').filter(Boolean).sort();
  };
  const owners = (manifest: LoadedManifest) =>
    kubectl('get', 'secret', nameOf(manifest), '--output', 'jsonpath={.metadata.ownerReferences[*].uid}');
  const uidOf = (kind: string, name: string) =>
    kubectl('get', kind, name, '--output', 'jsonpath={.metadata.uid}');
  const opsOf = async (manifest: LoadedManifest) =>
    (await runs.plan(manifest)).changes.map(({ op, key, observed }) => [op, key, observed?.found]);

  test('are made with their site, replaced when its configuration changes, and kept for a change back', async () => {
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await runs.plan(acme)).toEqual(NONE);
    const record = await uidOf('configmap', nameOf(acme));
    expect(await owners(acme)).toBe(record);
    expect((await runs.run(changed)).errors).toEqual([]);
    expect(await secretNames()).toEqual([nameOf(acme), nameOf(changed)].sort());
    const { changes, errors } = await runs.run(acme);
    expect(errors).toEqual([]);
    expect(changes.map(({ op, target }) => `${op} ${target}`)).toEqual([
      'update workloads',
      'update workloads',
    ]);
    expect(await owners(acme)).toBe(record);
  });

  test('can’t be read, listed, watched, changed or deleted by the account', async () => {
    const call = await callerAs(cluster, ACCOUNT);
    const place = { name: namespace, labels: {} };
    const secret = `${pathOf('secrets', namespace)}/${nameOf(acme)}`;
    const inside = pathOf('secrets', namespace);
    const calls = [
      ...(['list', 'watch'] as const).map((verb) => callOf({ group: '', resource: 'secrets', verb }, place)),
      { method: 'GET', path: secret },
      { method: 'GET', path: inside },
      { method: 'GET', path: `${inside}?watch=true&timeoutSeconds=5` },
      { method: 'PATCH', path: secret, body: { apiVersion: 'v1', kind: 'Secret' } },
      deleting(secret),
    ] as const;
    for (const one of calls) {
      expect(await call(one), JSON.stringify(one)).toEqual({
        status: 403,
        message: expect.stringMatching(/cannot \w+ resource "secrets"/),
      });
    }
  });

  test('would be in the answers to a patch or a deletion, if the account could send one', async () => {
    const name = nameOf(acme);
    const content = acme.config.reveal();
    const shown = (answer: string) =>
      Buffer.from(JSON.parse(answer).data?.CONTAINER_CONFIG ?? '', 'base64').toString();
    const dry = ['--dry-run=server', '--output=json'];
    expect(shown(await kubectl('patch', 'secret', name, '--type=merge', '--patch={}', ...dry))).toBe(content);
    const file = join(cluster.folder, 'deletion.json');
    const options = { propagationPolicy: 'Foreground', dryRun: ['All'] };
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'DeleteOptions', ...options }));
    const path = `${pathOf('secrets', namespace)}/${name}`;
    expect(shown(await cluster.kubectl('delete', '--raw', path, '--filename', file))).toBe(content);
    expect(await secretNames()).toContain(name);
  });

  test('are checked at least once an hour, and cause no call between checks', async () => {
    clock.advance(HOUR);
    expect(await runs.plan(acme)).toEqual(NONE);
    await kubectl('delete', 'secret', nameOf(acme));
    const calls = () => cluster.requests().filter(({ user }) => user === ACCOUNT).length;
    const before = calls();
    clock.advance(HOUR / 4);
    expect(await runs.plan(acme)).toEqual(NONE);
    expect(calls()).toBe(before);
    clock.advance(HOUR);
    const key = `${namespace}/Secret/${nameOf(acme)}`;
    expect(await opsOf(acme)).toEqual([['update', key, 'missing']]);
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await secretNames()).toContain(nameOf(acme));
    expect(await runs.plan(acme)).toEqual(NONE);
  });

  test('are made again after what owns them was deleted', async () => {
    const seen = runs.appliers[0]?.events?.(AbortSignal.timeout(60_000))[Symbol.asyncIterator]();
    const event = seen?.next();
    const record = await uidOf('configmap', nameOf(acme));
    await kubectl('delete', 'configmap', nameOf(acme));
    expect((await event)?.done).toBe(false);
    expect((await runs.run(acme)).errors).toEqual([]);
    const own = await uidOf('configmap', nameOf(acme));
    expect(own).not.toBe(record);
    expect(await owners(acme)).toBe(own);
    expect(await runs.plan(acme)).toEqual(NONE);
  });

  test('are made before a rollout if a provisioner has ended between making the record and the Secret', async () => {
    const next = configured(acme, '3');
    const [objects] = runs.appliers;
    const { changes } = await runs.plan(next);
    const ofSecret = changes.find(({ op, key }) => op === 'create' && key.includes('/Secret/'));
    if (ofSecret === undefined) throw new Error('no Secret is planned');
    await objects?.apply(ofSecret, AbortSignal.timeout(60_000));
    await kubectl('delete', 'secret', nameOf(next));
    await using another = await opened();
    expect((await new SiteRuns(another.sites).run(next)).errors).toEqual([]);
    expect(await secretNames()).toContain(nameOf(next));
  });

  test('are removed once no ReplicaSet names them', async () => {
    const next = configured(acme, '3');
    await kubectl('delete', 'replicasets', '--selector=tagyard/site=acme-shop', '--wait=true');
    await eventually(async () => {
      expect((await runs.run(next)).errors).toEqual([]);
      expect(await secretNames()).toEqual([nameOf(next)]);
    }, WAIT);
  });

  test.each([
    ['they are found to exist', '5', null, 'is still there'],
    ['a full quota hides whether they are gone', '6', '--hard=count/secrets=1', 'doesn’t say'],
  ])('are not reported as removed while %s', async (_, env, quota, message) => {
    const [objects] = runs.appliers;
    const [next, later] = [configured(acme, '3'), configured(acme, env)];
    const name = nameOf(later);
    const changeOf = async (op: string, manifest: LoadedManifest) => {
      const { changes } = await runs.plan(manifest);
      const change = changes.find((one) => one.op === op && one.key.endsWith(`/Secret/${name}`));
      if (change === undefined || objects === undefined) throw new Error(`no ${op} of ${name} is planned`);
      return () => objects.apply(change, AbortSignal.timeout(60_000));
    };
    await (await changeOf('create', later))();
    const finalizers = (names: readonly string[] | null) =>
      kubectl('patch', 'secret', name, `--patch=${JSON.stringify({ metadata: { finalizers: names } })}`);
    await finalizers(['shops.test/held']);
    const remove = await changeOf('delete', next);
    const another = () => kubectl('create', 'secret', 'generic', 'another', '--dry-run=server');
    if (quota !== null) {
      await kubectl('create', 'quota', 'theirs', quota);
      await eventually(() => expect(another()).rejects.toThrow('exceeded quota: theirs'), WAIT);
    }
    try {
      const outcome = remove().catch((error: unknown) => error);
      const isOver = outcome.then(() => true);
      await eventually(async () => {
        clock.advance(1_000);
        expect(await Promise.race([isOver, kubectl('get', 'secret', name)])).toBe(true);
      }, WAIT);
      expect(await outcome).toBeInstanceOf(RetryableError);
      expect(await outcome).toMatchObject({ message: expect.stringContaining(message) });
    } finally {
      await kubectl('delete', 'quota', 'theirs', '--ignore-not-found');
      await finalizers(null);
    }
    await eventually(another, WAIT);
    await eventually(async () => expect(await secretNames()).toEqual([nameOf(next)]), WAIT);
    // The next pass confirms the removal.
    expect((await runs.run(next)).errors).toEqual([]);
    expect(await runs.plan(next)).toEqual(NONE);
  });

  test('conflict with Secrets of others under the same name, which are never changed', async () => {
    const next = configured(acme, '3');
    const later = configured(acme, '4');
    const theirs = { apiVersion: 'v1', kind: 'Secret', metadata: { name: nameOf(later), namespace } };
    await cluster.create({ ...theirs, stringData: { their: 'content' } });
    const uid = await uidOf('secret', nameOf(later));
    const { conflicts, changes } = await runs.plan(later);
    expect(conflicts.map(({ key }) => key)).toEqual([`${namespace}/Secret/${nameOf(later)}`]);
    expect(changes.filter(({ key }) => key.includes('/Secret/'))).toEqual([]);
    const { errors } = await runs.run({ ...later, adopt: true });
    expect(errors.map(String).join()).toMatch(/can’t be read or taken over\. Remove it: kubectl/);
    expect(await uidOf('secret', nameOf(later))).toBe(uid);
    expect((await runs.run(next)).errors).toEqual([]);
    await kubectl('get', 'configmap', nameOf(next));
    await expect(kubectl('get', 'configmap', nameOf(later))).rejects.toThrow('not found');
  });

  test('are removed again by the next pass if their removal isn’t confirmed, although no record shows them any more', async () => {
    const other = configured(loadedManifest('other-shop', 1, { resources }), '1');
    expect((await runs.run(configured(acme, '3'), other)).errors).toEqual([]);
    const name = nameOf(other);
    const finalizers = (value: string) =>
      kubectl('patch', 'secret', name, '--type=merge', `--patch={"metadata":{"finalizers":${value}}}`);
    await finalizers('["shops.example/kept"]');
    expect((await runs.run(configured(acme, '3'))).errors.map(String).join()).toContain(
      `Secret ${name} is still there`,
    );
    const [again, ...rest] = (await runs.plan(configured(acme, '3'))).changes;
    expect([again?.op, again?.key, again?.site]).toEqual([
      'delete',
      `${namespace}/Secret/${name}`,
      other.site,
    ]);
    expect(rest).toEqual([]);
    // If it is desired again, it still counts as ours, and not as a conflict.
    expect((await runs.plan(configured(acme, '3'), other)).conflicts).toEqual([]);
    await finalizers('null');
    expect((await runs.run(configured(acme, '3'))).errors).toEqual([]);
    expect(await secretNames()).not.toContain(name);
    expect(await runs.plan(configured(acme, '3'))).toEqual(NONE);
  });

  test('are removed with their site; its namespace stays while a Secret of others is in it', async () => {
    const others = nameOf(configured(acme, '4'));
    expect((await runs.run()).errors).toEqual([]);
    expect(await secretNames()).toEqual([others]);
    const left = await kubectl('get', 'configmaps', '--selector', 'tagyard/instance', '--output', 'name');
    expect(left.trim()).toBe('');
    expect(await runs.plan()).toEqual(NONE);
    await sites.clients.ended();
    await kubectl('get', 'secret', others);
    await kubectl('delete', 'secret', others);
    await eventually(async () => {
      await runs.plan();
      await expect(cluster.kubectl('get', 'namespace', namespace)).rejects.toThrow('not found');
    }, WAIT);
  });

  test('were managed with only the right to create them', () => {
    const asked = cluster
      .requests()
      .filter(({ user, resource }) => user === ACCOUNT && resource === 'secrets');
    expect(new Set(asked.map(({ verb }) => verb))).toEqual(new Set(['create']));
  });

  async function opened() {
    const own = await open();
    return { sites: own, [Symbol.asyncDispose]: () => own.close() };
  }
});
