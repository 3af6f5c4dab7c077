import { objectKey } from '../../client/address.ts';
import type { ObjectSpec } from './object-spec.ts';

/** The desired Deployments of this host as the last observation had them. */
export class WantedSpecs {
  readonly #specs = new Map<string, ObjectSpec>();

  /** Sets those of the whole host (`scope` is `null`), or those of the sites in `scope`. */
  replace(specs: Iterable<ObjectSpec>, scope: ReadonlySet<string> | null): void {
    for (const [key, { manifest }] of this.#specs) {
      if (scope?.has(manifest.site) ?? true) this.#specs.delete(key);
    }
    for (const spec of specs) this.#specs.set(objectKey(spec.address), spec);
  }

  /** By `<namespace>/<name>`. */
  find(key: string): ObjectSpec | undefined {
    return this.#specs.get(key);
  }
}
