import { afterAll, beforeAll, expect } from 'vitest';
import type { Resource } from '../../../gitops/appliers/contract.ts';
import type { Cluster as SitesCluster } from '../../../gitops/kubernetes/applier/cluster.ts';
import { objectsApplier } from '../../../gitops/kubernetes/applier/objects-applier.ts';
import type { ObjectRef, ObjectSpec } from '../../../gitops/kubernetes/applier/state/object-spec.ts';
import { workloadsApplier } from '../../../gitops/kubernetes/applier/workloads-applier.ts';
import type { LoadedManifest } from '../../../sites/manifest/containers.ts';
import { Secret } from '../../../sites/manifest/secrets.ts';
import {
  applierConformance,
  CONFORMANCE_IDENTITY,
  type ConformanceSetup,
} from '../../gitops/appliers/conformance.ts';
import { describeWith } from '../../support/components.ts';
import { eventually } from '../../support/eventually.ts';
import { Cluster } from '../../support/kubernetes/cluster.ts';
import { ApiGate } from '../../support/kubernetes/gate.ts';
import { endingAtOnce, importTagServer, openSites } from '../../support/kubernetes/sites.ts';
import { loadedManifest } from '../../support/manifest.ts';

const NAMESPACE = `tagyard-${CONFORMANCE_IDENTITY.instance}-${loadedManifest().client}`;
const KINDS =
  'deployment,replicaset,pod,service,networkpolicy,poddisruptionbudget,horizontalpodautoscaler,configmap,secret';
const { signal } = new AbortController();

describeWith(['kubernetes', 'root'], 'the appliers of a cluster', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start({ nodes: 1 });
    await importTagServer(cluster);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  async function setup(
    build: (sites: SitesCluster) => Pick<ConformanceSetup<ObjectSpec, ObjectRef>, 'applier' | 'prepare'>,
  ): Promise<ConformanceSetup<ObjectSpec, ObjectRef>> {
    const gate = await ApiGate.open(cluster);
    const sites = await openSites({
      kubeconfig: gate.kubeconfig,
      identity: CONFORMANCE_IDENTITY,
      waitMs: 1_000,
      deployment: endingAtOnce,
    });
    await eventually(() => sites.copies.ready(signal));
    await sites.clients.ensure(loadedManifest(), false, signal);
    const built = build(sites);
    return {
      ...built,
      plantForeign,
      async breakObserve() {
        gate.cut();
        await eventually(() => expect(built.applier.observe([], signal)).rejects.toThrow());
        return async () => {
          await gate.heal();
          await eventually(() => built.applier.observe([], signal), { timeoutMs: 60_000 });
        };
      },
      async close() {
        await sites.close();
        gate.cut();
        await cluster.kubectl('delete', KINDS, '--all', '--namespace', NAMESPACE, '--wait=true');
      },
    };
  }

  /** Creates an object of this name without our mark. A Deployment gets no pods. */
  async function plantForeign({ spec }: Resource<ObjectSpec>) {
    const { metadata, ...object } = spec.reveal();
    const { name } = metadata;
    const own = object.kind === 'Deployment' ? { spec: { ...(object.spec as object), replicas: 0 } } : {};
    await cluster.create({ ...object, ...own, metadata: { name, namespace: NAMESPACE } });
    return async () => {
      const found = JSON.parse(
        await cluster.kubectl('get', object.kind, name, '--namespace', NAMESPACE, '--output', 'json'),
      );
      return { uid: found.metadata.uid, labels: found.metadata.labels, spec: found.spec, data: found.data };
    };
  }

  applierConformance('the objects of a site', () => setup((sites) => ({ applier: objectsApplier(sites) })), {
    change: (manifest) => ({ ...manifest, ports: { processing: 20_500, preview: 20_501 } }),
    timeoutMs: 60_000,
  });

  applierConformance(
    'the Deployments of a site',
    () =>
      setup((sites) => {
        const objects = objectsApplier(sites);
        const prepare = async (manifest: LoadedManifest) => {
          const desired = objects.desired(manifest);
          const scope = { sites: new Set([manifest.site]), keys: new Set<string>() };
          const { changes } = objects.plan(desired, await objects.observe(desired, signal, scope));
          const applied = changes.filter(({ op }) => op !== 'delete');
          await Promise.all(applied.map((change) => objects.apply(change, signal)));
        };
        return { applier: workloadsApplier(sites), prepare };
      }),
    {
      change: (manifest) => ({
        ...manifest,
        config: new Secret(Buffer.from('id=GTM-SERVER1&env=2&auth=an0ther-auth-t0ken').toString('base64')),
      }),
      timeoutMs: 120_000,
    },
  );
});
