import { addressOf, objectKey } from './address.ts';
import type { SentObject, Watched } from './contract.ts';
import { KubernetesRetryable } from './errors.ts';
import type { Kind, KubernetesObject } from './kinds.ts';
import { objectOfText } from './object-text.ts';

/**
 * How the API server begins the JSON of an object: with its kind (except in a list), and then with the members of its
 * metadata in the order of their Go type. Source: k8s.io/apimachinery, pkg/apis/meta/v1, ObjectMeta.
 */
const BEGINNING =
  /^\{(?:"kind":"\w+","apiVersion":"[\w./]+",)?"metadata":\{"name":"([^"\\]+)"(?:,"generateName":"[^"\\]*")?(?:,"namespace":"([^"\\]+)")?,"uid":"([^"\\]+)","resourceVersion":"([^"\\]+)"/;

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

type Copy = Pick<Watched, 'objects' | 'relist'>;

/** All objects of a copy, each parsed when it is read. */
export function* objectsOf(copy: Copy): Iterable<KubernetesObject> {
  for (const sent of copy.objects.values()) yield objectIn(copy, sent);
}

/** An object of a copy. Throws `KubernetesRetryable` for one that can't be read, and has the copy listed again. */
export function objectIn(copy: Copy, sent: SentObject): KubernetesObject {
  try {
    return sent.object;
  } catch (error) {
    if (error instanceof KubernetesRetryable) copy.relist(sent.key, error);
    throw error;
  }
}

export function parsedObject(object: KubernetesObject): SentObject {
  const { uid, resourceVersion: version } = object.metadata;
  return new Sent({ key: objectKey(addressOf(object)), uid, version }, object);
}

/** The object of a JSON text, parsed when it is first read. A text that doesn't begin as the API server's is parsed at once. */
export function sentObject(text: string, kind: Kind): SentObject {
  const [, name, namespace = null, uid, version] = BEGINNING.exec(text) ?? [];
  if (name === undefined || uid === undefined || version === undefined)
    return parsedObject(objectOfText(text, kind));
  const key = objectKey({ namespace, name });
  const named = { key: ownText(key), uid: ownText(uid), version: ownText(version) };
  return new Sent(named, () => objectOfText(text, kind));
}

/**
 * A copy of the part: V8 keeps the whole text in memory while a part of it is used, and a page of a listing has
 * megabytes.
 */
function ownText(part: string): string {
  return Buffer.from(part).toString();
}
