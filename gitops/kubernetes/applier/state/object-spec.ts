import type { Manifest } from '../../../../sites/manifest/schema.ts';
import { addressOf } from '../../client/address.ts';
import type { KubernetesObject, ObjectAddress } from '../../client/kinds.ts';

/** What is needed to delete an object. */
export interface ObjectRef {
  readonly address: ObjectAddress;
  readonly uid: string;
  /** The label `tagyard/client`. */
  readonly client: string | null;
}

/** What is known of the site for whose manifest an object was rendered. */
export type RenderedFor = Pick<Manifest, 'site' | 'client' | 'resources'>;

interface SpecOptions {
  readonly manifest: RenderedFor;
  /** Texts that must not be shown: the content of the site's Secret. */
  readonly secrets: readonly string[];
  /** Pods that a Deployment gets at first, if an autoscaler or gateways set the number later; `null`: nothing does. */
  readonly initialReplicas: number | null;
  /** Why the manifest's Deployments can't be applied; `null`: they can. */
  readonly refusal: string | null;
}

/**
 * A rendered object that can't print a secret by accident: JSON and string conversion hide the content of a Secret. Its
 * mark is added when it is applied.
 */
export class ObjectSpec {
  readonly #object: KubernetesObject;
  readonly #secrets: readonly string[];
  readonly #manifest: RenderedFor;
  readonly address: ObjectAddress;
  readonly initialReplicas: number | null;
  readonly refusal: string | null;

  constructor(object: KubernetesObject, { manifest, secrets, initialReplicas, refusal }: SpecOptions) {
    const { site, client, resources } = manifest;
    this.#object = object;
    this.#secrets = secrets;
    this.#manifest = { site, client, resources };
    this.initialReplicas = initialReplicas;
    this.refusal = refusal;
    this.address = addressOf(object);
  }

  get manifest(): RenderedFor {
    return this.#manifest;
  }

  /** The object with its secrets. */
  reveal(): KubernetesObject {
    return this.#object;
  }

  /** The text without the secrets of the site. */
  redacted(text: string): string {
    return this.#secrets
      .flatMap(formsOf)
      .reduce((shown, secret) => shown.replaceAll(secret, '[secret]'), text);
  }

  toJSON(): object {
    if (this.#object.kind !== 'Secret') return this.#object;
    const { apiVersion, kind, metadata } = this.#object;
    return { apiVersion, kind, metadata, data: '[secret]' };
  }

  toString(): string {
    return resourceKey(this.address);
  }

  [Symbol.for('nodejs.util.inspect.custom')](): string {
    return resourceKey(this.address);
  }
}

/** Shorter texts aren't hidden: they may also be parts of other words. */
const SHORTEST = 8;

/**
 * The forms in which a program may print a secret: as it is, decoded, percent-encoded, its `auth` alone, and the lines of a
 * key.
 */
function formsOf(secret: string): string[] {
  const decoded = Buffer.from(secret, 'base64').toString();
  const auth = /(?:^|&)auth=([^&]*)/.exec(decoded)?.[1] ?? '';
  const lines = secret.split(/\r?\n|\\n/);
  return [secret, decoded, auth, ...lines]
    .flatMap((text) => [text, encodeURIComponent(text.toWellFormed())])
    .filter((text) => text.length >= SHORTEST)
    .sort((a, b) => b.length - a.length);
}

/** `<namespace>/<Kind>/<name>` */
export function resourceKey({ kind, namespace, name }: ObjectAddress): string {
  return `${namespace ?? '-'}/${kind}/${name}`;
}
