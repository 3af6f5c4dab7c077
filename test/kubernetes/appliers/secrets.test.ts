import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { makeAccount } from '../../support/kubernetes/account.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { SiteRuns } from '../../support/kubernetes/site-runs.ts';
import { endingAtOnce, importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const IDENTITY = { instance: 'shops', host: 'tag-1' };
const WAIT = { timeoutMs: 60_000, intervalMs: 200 };
const NONE = { changes: [], conflicts: [] };

const configured = (manifest: LoadedManifest, env: string): LoadedManifest => ({
  ...manifest,
  config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}&auth=s3cret-auth-t0ken`).toString('base64')),
});

describeWith(['kubernetes', 'root'], 'the Secrets of sites', () => {
  let cluster: Cluster;
  let sites: SitesCluster;
  let runs: SiteRuns;
  const resources = { processing: { replicas: 1 } };
  const acme = configured(loadedManifest('acme-shop', 0, { resources }), '1');
  const changed = configured(acme, '2');
  const namespace = `tagyard-shops-${acme.client}`;
  const kubectl = (...args: string[]) => cluster.kubectl('--namespace', namespace, ...args);

  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await importTagServer(cluster);
    const kubeconfig = await makeAccount(cluster);
    sites = await openSites({ kubeconfig, identity: IDENTITY, deployment: endingAtOnce });
    runs = new SiteRuns(sites);
  });
  afterAll(async () => {
    await sites?.close();
    await cluster?.[Symbol.asyncDispose]();
  });

  const nameOf = (manifest: LoadedManifest): string =>
    sites.render(manifest).find(({ kind }) => kind === 'Secret')?.metadata.name ?? '';
  const keyOf = (manifest: LoadedManifest) => `${namespace}/Secret/${nameOf(manifest)}`;
  const names = async (kind: string) => {
    const found = await kubectl('get', kind, '--output', 'jsonpath={.items[*].metadata.name}');
    return found
      .split(' ')
      .filter((name) => name.startsWith('tag-'))
      .sort();
  };
  const secretNames = () => names('secrets');
  const read = async (manifest: LoadedManifest) =>
    JSON.parse(await kubectl('get', 'secret', nameOf(manifest), '--output', 'json'));
  const opsOf = async (manifest: LoadedManifest) =>
    (await runs.plan(manifest)).changes.map(({ op, key, observed }) => [op, key, observed?.found]);
  /** Makes the object in place of the one that has its name. */
  async function replaced(object: { kind: string; metadata: object }, ...flags: string[]) {
    const file = join(cluster.folder, 'replaced.json');
    const { uid: _, resourceVersion: __, managedFields: ___, ...metadata } = Object(object.metadata);
    await writeFile(file, JSON.stringify({ ...object, metadata }));
    await kubectl('delete', object.kind, metadata.name, '--ignore-not-found');
    await kubectl('create', '--filename', file, ...flags);
    return JSON.parse(await kubectl('get', object.kind, metadata.name, '--output', 'json'));
  }

  test('are made with their site, replaced when its configuration changes, and kept for a change back', async () => {
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await runs.plan(acme)).toEqual(NONE);
    expect((await runs.run(changed)).errors).toEqual([]);
    expect(await secretNames()).toEqual([nameOf(acme), nameOf(changed)].sort());
    const { changes, errors } = await runs.run(acme);
    expect(errors).toEqual([]);
    expect(changes.map(({ op, target }) => `${op} ${target}`)).toEqual([
      'update workloads',
      'update workloads',
    ]);
  });

  test('are watched without their content', () => {
    const copies = [...sites.copies.of('Secret')];
    expect(copies.map(({ metadata }) => metadata.name)).toContain(nameOf(acme));
    expect(copies.map((copy) => copy.data)).toEqual(copies.map(() => undefined));
  });

  test('are made again after they were deleted, which is noticed at once', async () => {
    const event = runs.appliers[0]?.events?.(AbortSignal.timeout(60_000))[Symbol.asyncIterator]().next();
    await kubectl('delete', 'secret', nameOf(acme));
    expect((await event)?.done).toBe(false);
    expect(await opsOf(acme)).toEqual([['create', keyOf(acme), undefined]]);
    expect((await runs.run(acme)).errors).toEqual([]);
    expect(await secretNames()).toContain(nameOf(acme));
    expect(await runs.plan(acme)).toEqual(NONE);
  });

  test('get their content back after others have replaced it', async () => {
    const own = await read(acme);
    const wrong = Buffer.from('wrong').toString('base64');
    await replaced({ ...own, immutable: false, data: { CONTAINER_CONFIG: wrong } });
    await eventually(async () =>
      expect(await opsOf(acme)).toEqual([
        ['update', keyOf(acme), expect.stringMatching(/^changed from outside:.* data$/)],
      ]),
    );
    const { changes, errors } = await runs.run(acme);
    expect(errors).toEqual([]);
    expect(await read(acme)).toMatchObject({ immutable: true, data: own.data });
    expect(await runs.plan(acme)).toEqual(NONE);

    await replaced({ ...own, data: { CONTAINER_CONFIG: wrong } });
    await eventually(async () => expect(await opsOf(acme)).toHaveLength(1));
    const refused = (await runs.run(acme)).errors.map(String).join();
    expect(refused).toContain('field is immutable');
    const shown = JSON.stringify(changes) + refused;
    for (const content of [acme.config.reveal(), own.data.CONTAINER_CONFIG, wrong]) {
      expect(shown).not.toContain(content);
    }
    await kubectl('delete', 'secret', nameOf(acme));
    await eventually(async () => {
      expect((await runs.run(acme)).errors).toEqual([]);
      expect(await read(acme)).toMatchObject({ data: own.data });
    }, WAIT);
  });

  test('stay as an earlier version made them, and are removed with their owners once no ReplicaSet names them', async () => {
    const own = await read(acme);
    const { apiVersion, metadata } = own;
    const flags = ['--field-manager=tagyard'];
    const record = { apiVersion, kind: 'ConfigMap', metadata, immutable: true };
    const { uid } = (await replaced(record, ...flags)).metadata;
    const ownerReferences = [{ apiVersion, kind: 'ConfigMap', name: metadata.name, uid }];
    const earlier = await replaced({ ...own, metadata: { ...metadata, ownerReferences } }, ...flags);
    const isSeen = () =>
      [...sites.copies.of('Secret')].some((copy) => copy.metadata.uid === earlier.metadata.uid) &&
      [...sites.copies.of('ConfigMap')].some((copy) => copy.metadata.uid === uid);
    await eventually(() => expect(isSeen()).toBe(true));
    expect(await runs.plan(acme)).toEqual(NONE);
    expect((await runs.run(changed)).errors).toEqual([]);
    // Pods of the earlier configuration may be started again.
    expect((await read(acme)).metadata.uid).toBe(earlier.metadata.uid);
    expect(await names('configmaps')).toEqual([metadata.name]);
    await kubectl('delete', 'replicasets', '--selector=tagyard/site=acme-shop', '--wait=true');
    await eventually(async () => {
      expect((await runs.run(changed)).errors).toEqual([]);
      expect(await secretNames()).toEqual([nameOf(changed)]);
      expect(await names('configmaps')).toEqual([]);
    }, WAIT);
  });

  test('conflict with Secrets of others under the same name, which are taken over only by adopt', async () => {
    const later = configured(acme, '4');
    const theirs = { apiVersion: 'v1', kind: 'Secret', metadata: { name: nameOf(later), namespace } };
    await cluster.create({ ...theirs, stringData: { their: 'content' } });
    const { uid } = (await read(later)).metadata;
    const { conflicts, changes } = await runs.plan(later);
    expect(conflicts.map(({ key }) => key)).toEqual([keyOf(later)]);
    expect(changes.filter(({ key }) => key.includes('/Secret/'))).toEqual([]);
    expect((await runs.run({ ...later, adopt: true })).errors).toEqual([]);
    const taken = await read(later);
    expect(taken.metadata.uid).toBe(uid);
    expect(Buffer.from(taken.data.CONTAINER_CONFIG, 'base64').toString()).toBe(later.config.reveal());
    expect(await runs.plan(later)).toEqual(NONE);
  });

  test('are removed with their site; its namespace stays while a Secret of others is in it', async () => {
    await kubectl('create', 'secret', 'generic', 'theirs');
    expect((await runs.run()).errors).toEqual([]);
    expect(await secretNames()).toEqual([]);
    expect(await runs.plan()).toEqual(NONE);
    await sites.clients.ended();
    await kubectl('get', 'secret', 'theirs');
    await kubectl('delete', 'secret', 'theirs');
    await eventually(async () => {
      await runs.plan();
      await expect(cluster.kubectl('get', 'namespace', namespace)).rejects.toThrow('not found');
    }, WAIT);
  });
});
