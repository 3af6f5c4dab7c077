import type { KubernetesObject } from '../clients/kubernetes/kinds.ts';

/**
 * When objects that others renew last changed, by the reader's own clock. The times that they hold are other
 * machines', and are never compared.
 */
export class LastChanges {
  #known: ReadonlyMap<string, { readonly version: string; readonly at: number }> = new Map();

  /** Notes all objects as they are at `now`. By name: since when each is so; one that wasn't known counts as changed. */
  note(objects: Iterable<KubernetesObject>, now: number): ReadonlyMap<string, number> {
    const known = new Map<string, { version: string; at: number }>();
    for (const { metadata } of objects) {
      const version = metadata.resourceVersion ?? '';
      const before = this.#known.get(metadata.name);
      known.set(metadata.name, before?.version === version ? before : { version, at: now });
    }
    this.#known = known;
    return new Map([...known].map(([name, { at }]) => [name, at]));
  }
}
