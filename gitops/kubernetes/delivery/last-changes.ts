import type { KubernetesObject } from '../client/kinds.ts';

/**
 * Last changes of objects that others renew, by the reader's own clock. The times in the objects are those of other
 * machines' clocks, and are never compared.
 */
export class LastChanges {
  #known: ReadonlyMap<string, { readonly version: string; readonly at: number }> = new Map();

  /**
   * Notes all objects as of `now`. Returns, by name, when each last changed; an object that wasn't known counts as
   * changed now.
   */
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
