import { afterAll, beforeAll, expect, test } from 'vitest';
import { openKubernetes } from '../../gitops/clients/kubernetes/client.ts';
import type { KubernetesClient } from '../../gitops/clients/kubernetes/contract.ts';
import type { KubernetesObject } from '../../gitops/clients/kubernetes/kinds.ts';
import { describeWith } from '../support/components.ts';
import { Cluster } from '../support/kubernetes/cluster.ts';

const OURS = { manager: 'tagyard', force: false };
const signal = () => AbortSignal.timeout(60_000);

const service = (name: string, port = 80): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'default', labels: { test: 'client' } },
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

  test('applies an object, reads it, lists it and deletes it, and a watched copy follows', async () => {
    const copy = client.watched({ kind: 'Service', labels: 'test=client' });
    await copy.ready(signal());
    expect([...copy.objects.keys()]).toEqual([]);
    const { object, warnings } = await client.apply(service('one'), OURS, signal());
    expect(warnings).toEqual([]);
    const { uid = '', resourceVersion = '' } = object.metadata;
    const address = { kind: 'Service', namespace: 'default', name: 'one' } as const;
    await copy.reached(address, resourceVersion, signal());
    expect(copy.objects.get('default/one')).toEqual(object);
    expect(await client.get(address, signal())).toEqual(object);
    const listed = await client.list({ kind: 'Service', labels: 'test=client' }, signal());
    expect(listed.items).toEqual([object]);
    await client.delete(address, uid, signal());
    await expect.poll(() => copy.objects.size).toBe(0);
    expect(await client.get(address, signal())).toBeNull();
    expect(copy.fault).toBeNull();
    await copy.close();
  });
});
