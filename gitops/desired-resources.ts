import type { Applier, Resource } from './appliers/contract.ts';
import type { LoadedManifest } from './manifest/containers.ts';

/** What each manifest asks of an applier, computed once: a manifest that is the same object asks for the same. */
export class DesiredResources {
  readonly #byApplier = new WeakMap<Applier, WeakMap<LoadedManifest, readonly Resource[]>>();

  of(applier: Applier, manifest: LoadedManifest): readonly Resource[] {
    let known = this.#byApplier.get(applier);
    if (known === undefined) {
      known = new WeakMap();
      this.#byApplier.set(applier, known);
    }
    let resources = known.get(manifest);
    if (resources === undefined) {
      resources = applier.desired(manifest);
      known.set(manifest, resources);
    }
    return resources;
  }
}
