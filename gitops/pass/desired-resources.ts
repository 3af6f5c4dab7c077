import type { Applier, Resource } from '../appliers/contract.ts';
import type { LoadedManifest } from '../manifest/containers.ts';

interface Known {
  readonly edition: string | undefined;
  readonly resources: readonly Resource[];
}

/** What each manifest asks of an applier, computed once an edition: the same object asks for the same. */
export class DesiredResources {
  readonly #byApplier = new WeakMap<Applier, WeakMap<LoadedManifest, Known>>();

  of(applier: Applier, manifest: LoadedManifest): readonly Resource[] {
    let known = this.#byApplier.get(applier);
    if (known === undefined) {
      known = new WeakMap();
      this.#byApplier.set(applier, known);
    }
    const edition = applier.edition?.(manifest);
    let entry = known.get(manifest);
    if (entry === undefined || entry.edition !== edition) {
      entry = { edition, resources: applier.desired(manifest) };
      known.set(manifest, entry);
    }
    return entry.resources;
  }
}
