import { KINDS, type Kind, type KubernetesObject, type ObjectAddress } from './kinds.ts';

/** Path of a kind's collection. Without a namespace: that of all namespaces. */
export function collectionPath(kind: Kind, namespace: string | null): string {
  const { apiVersion, plural } = KINDS[kind];
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === null
    ? `${root}/${plural}`
    : `${root}/namespaces/${encodeURIComponent(namespace)}/${plural}`;
}

export function objectPath({ kind, namespace, name }: ObjectAddress): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}

export function addressOf({ kind, metadata }: KubernetesObject): ObjectAddress {
  return { kind, namespace: metadata.namespace ?? null, name: metadata.name };
}

/** `<namespace>/<name>`; `<name>` for kinds without a namespace. */
export function objectKey({ namespace, name }: Omit<ObjectAddress, 'kind'>): string {
  return namespace === null ? name : `${namespace}/${name}`;
}

/** The key of an object. */
export const keyOfObject = (object: KubernetesObject): string => objectKey(addressOf(object));

/** As messages name an object: `Deployment a/b`. */
export const objectLabel = (address: ObjectAddress): string => `${address.kind} ${objectKey(address)}`;
