import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from './cluster.ts';

const NAME = 'provisioner';
const NAMESPACE = 'default';
/** The account as the API server's audit log names it. */
export const ACCOUNT = `system:serviceaccount:${NAMESPACE}:${NAME}`;

type Verb = 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete';

const WRITTEN: readonly Verb[] = ['get', 'list', 'watch', 'create', 'patch', 'delete'];
/** Verbs by API group and resource: what the appliers need, and no more. */
const RIGHTS: readonly (readonly [group: string, resource: string, verbs: readonly Verb[]])[] = [
  ['', 'namespaces', ['list', 'watch', 'get', 'create', 'patch', 'delete']],
  ['', 'resourcequotas', WRITTEN],
  ['', 'secrets', WRITTEN],
  ['', 'services', WRITTEN],
  ['', 'pods', ['list']],
  ['', 'configmaps', ['list', 'watch', 'delete']],
  ['', 'persistentvolumeclaims', ['list']],
  ['events.k8s.io', 'events', ['list']],
  ['apps', 'deployments', WRITTEN],
  ['apps', 'replicasets', ['list']],
  ['apps', 'statefulsets', ['list']],
  ['apps', 'daemonsets', ['list']],
  ['batch', 'jobs', ['list']],
  ['batch', 'cronjobs', ['list']],
  ['networking.k8s.io', 'ingresses', ['list']],
  ['autoscaling', 'horizontalpodautoscalers', WRITTEN],
  ['policy', 'poddisruptionbudgets', WRITTEN],
  ['networking.k8s.io', 'networkpolicies', WRITTEN],
];

/** Gives the account its rights, except the verb of a resource that `but` names. */
export async function grant(
  cluster: Cluster,
  { but }: { readonly but?: { readonly resource: string; readonly verb: Verb } } = {},
): Promise<void> {
  await cluster.apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRole',
    metadata: { name: NAME },
    rules: RIGHTS.map(([group, resource, verbs]) => ({
      apiGroups: [group],
      resources: [resource],
      verbs: verbs.filter((verb) => !(resource === but?.resource && verb === but.verb)),
    })),
  });
}

/** Makes the account, and returns the path of a kubeconfig with which it connects. */
export async function makeAccount(cluster: Cluster): Promise<string> {
  await grant(cluster);
  await cluster.kubectl('create', 'serviceaccount', NAME, '--namespace', NAMESPACE);
  await cluster.kubectl(
    'create',
    'clusterrolebinding',
    NAME,
    `--clusterrole=${NAME}`,
    `--serviceaccount=${NAMESPACE}:${NAME}`,
  );
  const token = (await cluster.kubectl('create', 'token', NAME, '--namespace', NAMESPACE)).trim();
  const config = JSON.parse(await readFile(cluster.kubeconfig, 'utf8'));
  const file = join(cluster.folder, `${NAME}.kubeconfig`);
  const users = config.users.map(({ name }: { name: string }) => ({ name, user: { token } }));
  await writeFile(file, JSON.stringify({ ...config, users }));
  return file;
}
