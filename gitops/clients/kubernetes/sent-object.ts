import { addressOf, objectKey } from './address.ts';
import type { SentObject, Watched } from './contract.ts';
import { KubernetesRetryable } from './errors.ts';
import { KINDS, type Kind, type KubernetesObject, type ManagedFields } from './kinds.ts';

/**
 * How the API server begins the JSON of an object: with its kind, and the members of its metadata in the order of their Go
 * type. Source: k8s.io/apimachinery, pkg/apis/meta/v1, ObjectMeta.
 */
const BEGINNING =
  /\{"kind":"\w+","apiVersion":"[\w./]+","metadata":\{"name":"([^"\\]+)"(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([^"\\]+)")?,"uid":"([^"\\]+)","resourceVersion":"([^"\\]+)"/y;

type Content = KubernetesObject | (() => KubernetesObject);

class Sent implements SentObject {
  readonly key: string;
  readonly uid: string | undefined;
  readonly version: string | undefined;
  #content: Content;

  constructor({ key, uid, version }: Omit<SentObject, 'object'>, content: Content) {
    this.key = key;
    this.uid = uid;
    this.version = version;
    this.#content = content;
  }

  get object(): KubernetesObject {
    if (typeof this.#content === 'function') this.#content = this.#content();
    return this.#content;
  }
}

/** All objects of a copy, each parsed when it is read. */
export function* objectsOf({ objects }: Pick<Watched, 'objects'>): Iterable<KubernetesObject> {
  for (const { object } of objects.values()) yield object;
}

export function parsedObject(object: KubernetesObject): SentObject {
  const { uid, resourceVersion: version } = object.metadata;
  return new Sent({ key: objectKey(addressOf(object)), uid, version }, object);
}

/**
 * The object whose JSON begins at this place of the text; `parse` is called when it is first read. `null`: it doesn't begin
 * as the API server begins it.
 */
export function objectAt(text: string, index: number, parse: () => KubernetesObject): SentObject | null {
  BEGINNING.lastIndex = index;
  const found = BEGINNING.exec(text);
  if (found === null) return null;
  const [, name = '', namespace = null, uid, version] = found;
  return new Sent({ key: objectKey({ namespace, name }), uid, version }, parse);
}

/** An item of a list or a watch as an object of its kind: items of a list don't name it, partial ones name another. */
export function objectOf(item: unknown, { kind }: { readonly kind: Kind }): KubernetesObject {
  const { metadata } = (item ?? {}) as { metadata?: { name?: unknown; managedFields?: unknown } };
  if (typeof metadata?.name !== 'string') {
    throw new KubernetesRetryable('unavailable', `Kubernetes: ${kind}: the answer is no object`);
  }
  const object = item as KubernetesObject;
  const { managedFields } = metadata;
  return {
    ...object,
    apiVersion: KINDS[kind].apiVersion,
    kind,
    metadata: Array.isArray(managedFields)
      ? { ...object.metadata, managedFields: managedFields.map(withText) }
      : object.metadata,
  };
}

function withText(entry: Omit<ManagedFields, 'fieldsV1'> & { readonly fieldsV1?: object }): ManagedFields {
  const { fieldsV1 } = entry;
  return { ...entry, fieldsV1: fieldsV1 === undefined ? '{}' : JSON.stringify(fieldsV1) };
}
