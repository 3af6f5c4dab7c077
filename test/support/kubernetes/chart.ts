import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { KUBERNETES } from '../components.ts';
import type { Cluster } from './cluster.ts';
import { writeProgramImage } from './image.ts';
import { run } from './machine.ts';

/** The folder of the project's Helm chart. */
export const CHART = fileURLToPath(new URL('../../../deploy/chart', import.meta.url));

export const helm = (...args: string[]) => run(join(KUBERNETES, 'helm'), ...args);

/** Helm's flags for values by their names. */
export const valueFlags = (values: object): string[] =>
  Object.entries(values).flatMap(([name, value]) => ['--set-json', `${name}=${JSON.stringify(value)}`]);

/** The chart's objects as Helm renders them for a release `tagyard` in a namespace `tagyard`. */
export const renderedChart = (values: object) =>
  helm('template', 'tagyard', CHART, '--namespace', 'tagyard', ...valueFlags(values));

/**
 * Imports the image of a program that answers the probes, named by repository and digest. Returns the digest.
 */
export async function importStandIn(cluster: Cluster, repository: string): Promise<string> {
  const image = join(cluster.folder, 'stand-in.tar');
  const busybox = '/bin/busybox';
  const answer = `echo -en 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\nConnection: close\\r\\n\\r\\n'`;
  const serve = `${busybox} nc -ll -p 8081 -e ${busybox} sh -c "${answer}"`;
  await writeProgramImage(image, {
    name: `${repository}:1`,
    program: busybox,
    // A first process without a handler would ignore SIGTERM.
    entrypoint: [busybox, 'sh', '-c', `trap 'exit 0' TERM; ${serve} & wait`],
  });
  return await cluster.importByDigest(image, repository);
}

/**
 * What an operator creates first: the Secrets. Here also a volume: the folder `provisioner` in the cluster's folder.
 */
export async function prerequisites(
  { folder }: Cluster,
  namespace: string,
  { identity, settings }: { identity: string; settings: object },
): Promise<object[]> {
  const path = join(folder, 'provisioner');
  await mkdir(path);
  const metadata = (name: string) => ({ name, namespace });
  const secret = (name: string, stringData: object) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: metadata(name),
    stringData,
  });
  return [
    secret('tagyard', settings),
    secret('tagyard-age-identity', { identity }),
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'provisioner' },
      spec: {
        capacity: { storage: '4Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path },
        claimRef: metadata('tagyard-state'),
      },
    },
  ];
}
