import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { Applier, Resource } from '../appliers/contract.ts';

interface CachedResources {
  readonly edition: string | undefined;
  readonly resources: readonly Resource[];
}

/** The resources that each manifest asks for, computed once per applier, manifest object and edition. */
export class DesiredResources {
  readonly #byApplier = new WeakMap<Applier, WeakMap<LoadedManifest, CachedResources>>();

  of(applier: Applier, manifest: LoadedManifest): readonly Resource[] {
    let byManifest = this.#byApplier.get(applier);
    if (byManifest === undefined) {
      byManifest = new WeakMap();
      this.#byApplier.set(applier, byManifest);
    }
    const edition = applier.edition?.(manifest);
    let cached = byManifest.get(manifest);
    if (cached === undefined || cached.edition !== edition) {
      cached = { edition, resources: applier.desired(manifest) };
      byManifest.set(manifest, cached);
    }
    return cached.resources;
  }
}
