import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { z } from 'zod';
import { podAccount } from '../../gitops/kubernetes/client/pod-account.ts';
import { Secret } from '../../sites/manifest/secrets.ts';
import { describeWith } from '../support/components.ts';
import { eventually } from '../support/eventually.ts';
import { applySites } from '../support/kubernetes/apply-sites.ts';
import { type ApiCall, accountKubeconfig, callerAs, tokenKubeconfig } from '../support/kubernetes/call-as.ts';
import {
  CHART,
  helm,
  importStandIn,
  prerequisites,
  renderedChart,
  valueFlags,
} from '../support/kubernetes/chart.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';
import { importKeptServer, KEPT_SERVER } from '../support/kubernetes/kept-server.ts';
import { ip } from '../support/kubernetes/machine.ts';
import {
  applying,
  callOf,
  creating,
  deleting,
  namespaceWith,
  pathOf,
  sampleOf,
} from '../support/kubernetes/rights.ts';
import { startServiceLoad } from '../support/kubernetes/service-load.ts';
import { endingAtOnce, importTagServer, openSites } from '../support/kubernetes/sites.ts';
import { loadedManifest } from '../support/manifest.ts';

const NAMESPACE = 'tagyard';
const GATEWAYS = 'tagyard-gateway';
const ACCOUNT = `system:serviceaccount:${NAMESPACE}:tagyard`;
/** What the chart makes outside of namespaces has this name. */
const NAME = 'tagyard-tagyard';
const IMAGE = 'provisioner.test/provisioner';
const LABELS = { 'tagyard/instance': 'tagyard', 'tagyard/host': 'cluster-1' };
const RESTRICTED = { 'pod-security.kubernetes.io/enforce': 'restricted' };

const WAIT = { timeoutMs: 120_000, intervalMs: 500 };
/** Values that the chart demands. The stand-in for the provisioner reads neither of them. */
const WITHOUT_CONTENT = { identity: 'none', settings: { INFRA_SECRET: 'a-secret' } };

const VALUES = {
  image: { repository: IMAGE, digest: `sha256:${'a'.repeat(64)}` },
  host: 'cluster-1',
  settings: { EDGE_DOMAIN: 'edge.example.net', CLOUDFLARE_RATE: 3.5 },
};

const GATEWAY = {
  enabled: true,
  image: { repository: 'gateway.test/gateway', digest: `sha256:${'b'.repeat(64)}` },
  // A dry run makes no namespace for the objects in it.
  namespace: GATEWAYS,
  createNamespace: false,
};

const rules = z.array(
  z.object({
    apiGroups: z.tuple([z.string()]),
    resources: z.tuple([z.string()]),
    verbs: z.array(z.string()),
  }),
);
describeWith(['kubernetes', 'root'], 'the chart in a cluster', () => {
  let cluster: Cluster;
  let values: object;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    const digest = await importStandIn(cluster, IMAGE);
    values = { ...VALUES, image: { repository: IMAGE, digest } };
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: [NAMESPACE, GATEWAYS].map((name) => namespaceWith(name, RESTRICTED)),
    });
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'List',
      items: await prerequisites(cluster, NAMESPACE, WITHOUT_CONTENT),
    });
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const inCluster = (verb: string, ...args: string[]) =>
    helm(verb, 'tagyard', ...args, '--namespace', NAMESPACE, '--kubeconfig', cluster.kubeconfig);
  const get = async (...args: string[]) =>
    JSON.parse(await cluster.kubectl('get', ...args, '--output', 'json'));
  const deployment = () => get('deployment', 'tagyard', '--namespace', NAMESPACE);

  test.each([
    {},
    { namespace: NAMESPACE },
    { state: { persistent: false }, admit: [{ podSelector: {} }] },
    { gateway: GATEWAY },
    { namespace: NAMESPACE, gateway: GATEWAY },
  ])('passes the API server’s strict validation with %o', async (more) => {
    const file = join(cluster.folder, 'rendered.yaml');
    await writeFile(file, await renderedChart({ ...values, ...more }));
    await cluster.kubectl('apply', '--dry-run=server', '--validate=strict', '--filename', file);
  });

  test('is upgraded from an earlier version during the rollout of a site, which loses no request', async () => {
    const earlier = join(cluster.folder, 'earlier');
    await cp(CHART, earlier, { recursive: true });
    const about = parse(await readFile(join(CHART, 'Chart.yaml'), 'utf8'));
    await writeFile(join(earlier, 'Chart.yaml'), JSON.stringify({ ...about, version: '0.0.9' }));
    await inCluster('install', earlier, '--wait', '--timeout', '180s', ...valueFlags(values));
    const before = await deployment();
    expect(before.metadata.labels['helm.sh/chart']).toBe('tagyard-0.0.9');
    expect(before.status.readyReplicas).toBe(1);

    const settings = { EDGE_DOMAIN: 'other.example.net' };
    await withSiteUnderLoad(async (rollOut) => {
      const flags = ['--wait', '--timeout', '180s', ...valueFlags({ ...values, settings })];
      await Promise.all([inCluster('upgrade', CHART, ...flags), rollOut()]);
    });
    const after = await deployment();
    expect(after.metadata.labels['helm.sh/chart']).not.toBe('tagyard-0.0.9');
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(after.status).toMatchObject({ readyReplicas: 1, observedGeneration: after.metadata.generation });
    expect(JSON.stringify(after.spec)).toContain('other.example.net');
  });

  /**
   * Does `work`, which must roll out a site that the chart's account has made. Fails if the site loses a request
   * meanwhile.
   */
  async function withSiteUnderLoad(work: (rollOut: () => Promise<void>) => Promise<unknown>): Promise<void> {
    const of = (env: string) => ({
      ...loadedManifest('loaded-shop', 0),
      image: KEPT_SERVER,
      config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}`).toString('base64')),
    });
    const site = of('1');
    await importKeptServer(cluster);
    await using sites = await openedSites();
    await applySites(sites.opened, [site]);
    const service = await get(
      ...['service', 'tag-loaded-shop-processing', '--namespace', `tagyard-tagyard-${site.client}`],
    );
    const host = service.spec.clusterIP;
    await ip(`route add ${host}/32 via ${cluster.nodes[0]?.address}`);
    await eventually(() => fetch(`http://${host}:${site.ports.processing}/`), WAIT);
    const load = startServiceLoad({ host, port: site.ports.processing, perSecond: 20 });
    const [done] = await Promise.allSettled([work(() => applySites(sites.opened, [of('2')]))]);
    const { failures, answers, sent } = await load.end();
    if (done.status === 'rejected') throw done.reason;
    expect(failures).toEqual([]);
    expect(sent).toBeGreaterThan(50);
    expect([...answers].map((answer) => /env=(\d)/.exec(answer)?.[1]).toSorted()).toEqual(['1', '2']);
    await applySites(sites.opened, []);
  }
  async function openedSites(own: Pick<Parameters<typeof openSites>[0], 'deployment'> = {}) {
    const opened = await openSites({
      kubeconfig: await accountKubeconfig(cluster, NAMESPACE, 'tagyard'),
      identity: { instance: 'tagyard', host: 'cluster-1' },
      ...own,
    });
    return { opened, [Symbol.asyncDispose]: () => opened.close() };
  }

  describe('its account', () => {
    const place = { name: 'tagyard-tagyard-one', labels: { ...LABELS, ...RESTRICTED } };
    let call: Awaited<ReturnType<typeof callerAs>>;
    let all: z.output<typeof rules>;
    let rights: { group: string; resource: string; verb: string }[];
    beforeAll(async () => {
      call = await callerAs(cluster, ACCOUNT);
      all = rules.parse((await get('clusterrole', NAME)).rules);
      rights = all.flatMap(({ apiGroups: [group], resources: [resource], verbs }) =>
        verbs.map((verb) => ({ group, resource, verb })),
      );
      await cluster.apply(namespaceWith(place.name, place.labels));
      const written = rights.filter(({ resource, verb }) => verb === 'delete' && resource !== 'namespaces');
      const items = ['resourcequotas', ...written.map(({ resource }) => resource)].map((resource) =>
        sampleOf(resource, { name: 'sample', namespace: place.name }),
      );
      await cluster.apply({ apiVersion: 'v1', kind: 'List', items });
      // The policy takes effect some time after it exists.
      const foreign = creating('secrets', sampleOf('secrets', { name: 'sample' }), 'default');
      await eventually(async () => expect((await call(foreign)).message).toContain('may only change'));
    });

    test('can make each call for which it has a right, and can’t make it without that right', async () => {
      expect(rights.length).toBeGreaterThan(30);
      for (const right of rights) {
        const one = callOf(right, place);
        const outcome = { ...right, ...(await call(one)) };
        expect([200, 201], JSON.stringify(outcome)).toContain(outcome.status);
        await setRules(
          all.flatMap((rule) => {
            const isIt = rule.apiGroups[0] === right.group && rule.resources[0] === right.resource;
            const verbs = rule.verbs.filter((verb) => !isIt || verb !== right.verb);
            return verbs.length === 0 ? [] : [{ ...rule, verbs }];
          }),
        );
        const message = expect.stringContaining(`cannot ${right.verb} resource "${right.resource}"`);
        await eventually(async () => expect(await call(one)).toEqual({ status: 403, message }));
      }
      await setRules(all);
    });

    test.each([
      ['create a ConfigMap', creating('configmaps', sampleOf('configmaps', { name: 'new' }), place.name)],
      ['read what a pod prints', { method: 'GET', path: `${pathOf('pods', place.name)}/sample/log` }],
      ['run a program in a pod', { method: 'POST', path: `${pathOf('pods', place.name)}/sample/exec` }],
      ['delete a pod', deleting(`${pathOf('pods', place.name)}/sample`)],
      [
        'read its own rights',
        { method: 'GET', path: `/apis/rbac.authorization.k8s.io/v1/clusterroles/${NAME}` },
      ],
    ] satisfies [string, ApiCall][])('may not %s', async (_, one) => {
      expect(await call(one)).toMatchObject({ status: 403, message: expect.stringContaining('cannot') });
    });

    const own = `${pathOf('namespaces')}/${place.name}`;
    const others = `${pathOf('namespaces')}/${NAMESPACE}`;
    test.each([
      ['create a namespace without our labels', creating('namespaces', namespaceWith('foreign', RESTRICTED))],
      ['create a namespace that permits all pods', creating('namespaces', namespaceWith('loose', LABELS))],
      ['take over another’s namespace', applying(others, namespaceWith(NAMESPACE, place.labels))],
      ['delete another’s namespace', deleting(others)],
      [
        'change our labels',
        applying(own, namespaceWith(place.name, { ...place.labels, 'tagyard/host': 'two' })),
      ],
      ['create a Secret elsewhere', creating('secrets', sampleOf('secrets', { name: 'sample' }), 'default')],
      ['delete its own Deployment', deleting(`${pathOf('deployments', NAMESPACE)}/tagyard`)],
    ])('is refused by the chart’s policy if it tries to %s', async (_, one) => {
      expect(await call(one)).toMatchObject({
        status: 403,
        message: expect.stringContaining(`ValidatingAdmissionPolicy '${NAME}'`),
      });
    });

    const setRules = (changed: z.output<typeof rules>) =>
      cluster.kubectl(
        'patch',
        'clusterrole',
        NAME,
        '--type=merge',
        '--patch',
        JSON.stringify({ rules: changed }),
      );
  });

  test('gives its account the rights for what the appliers call, and no more', async () => {
    const all = rules.parse((await get('clusterrole', NAME)).rules);
    const granted = all.flatMap(({ resources: [resource], verbs }) =>
      verbs.map((verb) => `${verb} ${resource}`),
    );
    await importTagServer(cluster);
    const { opened: sites } = await openedSites({ deployment: endingAtOnce });
    try {
      const of = (env: string) => ({
        ...loadedManifest('acme-shop', 0, { resources: { processing: { replicas: 1 } } }),
        config: new Secret(Buffer.from(`id=GTM-SERVER1&env=${env}`).toString('base64')),
      });
      await applySites(sites, [of('1')]);
      await expect(applySites(sites, [of('broken')])).rejects.toThrow('failed');
      const place = `tagyard-tagyard-${of('1').client}`;
      // What others have deleted is made again.
      for (const kind of ['secret', 'service', 'networkpolicy', 'pdb', 'hpa']) {
        await cluster.kubectl('delete', kind, '--all', '--namespace', place);
      }
      await applySites(sites, [of('1')]);
      // The namespace stays while objects in it are being deleted.
      await eventually(async () => {
        await applySites(sites, []);
        await expect(cluster.kubectl('get', 'namespace', place)).rejects.toThrow('not found');
      }, WAIT);
    } finally {
      await sites.close();
    }
    // A watch is in the log once it has ended.
    await eventually(() => {
      const asked = cluster.requests().filter(({ user }) => user === ACCOUNT);
      expect(asked.filter(({ code }) => code === 403)).toEqual([]);
      // An apply that creates needs both rights.
      const used = asked.flatMap(({ verb, resource, code }) =>
        [verb, ...(verb === 'patch' && code === 201 ? ['create'] : [])].map((one) => `${one} ${resource}`),
      );
      // Used only for what earlier versions made, where a pod doesn't say itself why it isn't ready, or after a conflict
      // with another writer.
      const rare = ['delete configmaps', 'list events', 'get namespaces', 'get resourcequotas'];
      expect(granted.filter((right) => !used.includes(right))).toEqual(rare);
    });
  });

  test('lets its account change only what has our labels, in one namespace made by others', async () => {
    await cluster.kubectl('create', 'namespace', 'sites');
    const settings = { KUBERNETES_GATEWAY_SERVICE: `${NAMESPACE}/tagyard` };
    const flags = valueFlags({ ...values, namespace: 'sites', settings });
    await helm(
      'install',
      'tagyard',
      CHART,
      '--namespace',
      'sites',
      '--kubeconfig',
      cluster.kubeconfig,
      ...flags,
    );
    const call = await callerAs(cluster, 'system:serviceaccount:sites:tagyard');
    const secret = (labels: object) =>
      creating('secrets', sampleOf('secrets', { name: 'sample', labels }), 'sites');
    await eventually(async () => expect((await call(secret(LABELS))).status).toBe(201));
    const refused = { status: 403, message: expect.stringContaining('may only change what has the labels') };
    await eventually(async () => expect(await call(secret({}))).toEqual(refused));
    const gateway = `${pathOf('services', NAMESPACE)}?fieldSelector=metadata.name%3D`;
    expect(await call({ method: 'GET', path: `${gateway}tagyard` })).toMatchObject({ status: 200 });
    expect(await call({ method: 'GET', path: `${gateway}other` })).toMatchObject({ status: 403 });
    for (const resource of ['secrets', 'namespaces', 'deployments']) {
      const everywhere = { method: 'GET', path: pathOf(resource) } as const;
      expect(await call(everywhere)).toEqual({
        status: 403,
        message: expect.stringContaining('cannot list'),
      });
    }
    await helm('uninstall', 'tagyard', '--namespace', 'sites', '--kubeconfig', cluster.kubeconfig);
  });

  test('starts without a volume, and its pod sees the ConfigMap that stops all changes come and go', async () => {
    await cluster.kubectl('create', 'namespace', 'plain');
    const place = ['--namespace', 'plain'];
    const secrets = { tagyard: 'INFRA_SECRET=a-secret', 'tagyard-age-identity': 'identity=none' };
    for (const [name, content] of Object.entries(secrets))
      await cluster.kubectl('create', 'secret', 'generic', name, `--from-literal=${content}`, ...place);
    const flags = [...place, '--kubeconfig', cluster.kubeconfig];
    const own = valueFlags({ ...values, state: { persistent: false } });
    await helm('install', 'tagyard', CHART, ...flags, ...own, '--wait', '--timeout', '180s');
    const printed = (file: string) =>
      cluster.kubectl('exec', 'deployment/tagyard', ...place, '--', '/bin/busybox', 'cat', file);
    const why = () => printed('/etc/tagyard/freeze/freeze');
    await expect(why()).rejects.toThrow(/No such file/);
    await cluster.kubectl(
      'create',
      'configmap',
      'tagyard-freeze',
      '--from-literal=freeze=an audit',
      ...place,
    );
    const late = { ...WAIT, timeoutMs: 150_000 };
    await eventually(async () => expect(await why()).toBe('an audit'), late);
    await cluster.kubectl('delete', 'configmap', 'tagyard-freeze', ...place);
    await eventually(async () => await expect(why()).rejects.toThrow(/No such file/), late);

    const token = await printed('/var/run/secrets/kubernetes.io/serviceaccount/token');
    const account = await get('serviceaccount', 'tagyard', ...place);
    expect(await podAccount({ kubeconfig: await tokenKubeconfig(cluster, 'plain-pod', token) })).toBe(
      account.metadata.uid,
    );
    await helm('uninstall', 'tagyard', ...flags);
  });

  test('removes everything except its state when it is uninstalled', async () => {
    await inCluster('uninstall', '--wait', '--timeout', '180s');
    const kinds = parseAllDocuments(await renderedChart(values)).map((one) => String(one.get('kind')));
    const left = await cluster.kubectl(
      'get',
      [...new Set(kinds)].join(),
      '--all-namespaces',
      '--selector',
      'app.kubernetes.io/name=tagyard',
      '--output',
      'name',
    );
    // Each of the two installations with a volume had a PersistentVolumeClaim of this name.
    expect(new Set(left.trim().split('\n'))).toEqual(new Set(['persistentvolumeclaim/tagyard-state']));
  });
});
