import { keyOfObject } from './address.ts';
import type { ObjectChange } from './contract.ts';
import type { KubernetesObject } from './kinds.ts';
import type { WatchEvent } from './watch-events.ts';

/** The objects that a watch has shown, and the version up to which it has shown them. */
export class ObjectCopy {
  readonly #objects = new Map<string, KubernetesObject>();
  #version: string | null = null;

  get objects(): ReadonlyMap<string, KubernetesObject> {
    return this.#objects;
  }

  /** The version from which a watch continues; `null`: there was no listing yet. */
  get version(): string | null {
    return this.#version;
  }

  /** Takes over a complete listing. Returns what it changes. */
  listed(items: readonly KubernetesObject[], resourceVersion: string): ObjectChange[] {
    const before = new Map(this.#objects);
    this.#objects.clear();
    const changes: ObjectChange[] = [];
    for (const object of items) {
      const key = keyOfObject(object);
      const known = before.get(key);
      before.delete(key);
      // The known object stays: its users may compare by identity.
      const isSame =
        known !== undefined && versionOf(known) === versionOf(object) && isOneObject(known, object);
      this.#objects.set(key, isSame ? known : object);
      if (!isSame) changes.push(...changesTo(known, object));
    }
    for (const object of before.values()) changes.push({ type: 'deleted', object });
    this.#version = resourceVersion;
    return changes;
  }

  /** Takes over an event of the watch. Returns what it changes. */
  take(event: WatchEvent): ObjectChange[] {
    if (event.type === 'bookmark') {
      this.#version = event.resourceVersion;
      return [];
    }
    const { type, object } = event;
    const key = keyOfObject(object);
    const known = this.#objects.get(key);
    this.#version = versionOf(object) ?? this.#version;
    if (type === 'set') {
      this.#objects.set(key, object);
      return changesTo(known, object);
    }
    this.#objects.delete(key);
    return known === undefined ? [] : [{ type, object }];
  }

  /** Whether the copy shows this version of the object, a newer one, or that it has been deleted since. */
  has(key: string, resourceVersion: string): boolean {
    const object = this.#objects.get(key);
    return (
      isReached(object === undefined ? null : versionOf(object), resourceVersion) ||
      (object === undefined && isReached(this.#version, resourceVersion))
    );
  }
}

function changesTo(known: KubernetesObject | undefined, object: KubernetesObject): ObjectChange[] {
  if (known === undefined) return [{ type: 'added', object }];
  if (isOneObject(known, object)) return [{ type: 'changed', object }];
  // The known object was deleted, and another one has its name now.
  return [
    { type: 'deleted', object: known },
    { type: 'added', object },
  ];
}

const isOneObject = (a: KubernetesObject, b: KubernetesObject): boolean => a.metadata.uid === b.metadata.uid;

const versionOf = ({ metadata }: KubernetesObject): string | null => metadata.resourceVersion ?? null;

/**
 * The versions of one kind are numbers that grow. Conformance tests require it since Kubernetes 1.35; earlier releases
 * do it, too. Source: Kubernetes enhancement proposal 5504.
 */
function isReached(version: string | null, wanted: string): boolean {
  if (version === null) return false;
  return isNumber(version) && isNumber(wanted) ? BigInt(version) >= BigInt(wanted) : version === wanted;
}

const isNumber = (text: string): boolean => /^\d+$/.test(text);
