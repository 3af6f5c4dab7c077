import type { LoadedManifest } from '../../sites/manifest/containers.ts';
import type { Applier } from '../appliers/contract.ts';

/** Counts the preview servers of a site that run on this machine and have our mark, desired or not. */
export function runningPreviews(containers: Pick<Applier, 'desired' | 'observe'>) {
  return async (manifest: LoadedManifest, signal: AbortSignal): Promise<number> => {
    const desired = containers.desired(manifest);
    const scope = { sites: new Set([manifest.site]), keys: new Set(desired.map(({ key }) => key)) };
    const observed = await containers.observe(desired, signal, scope);
    const serving = observed.filter(
      ({ key, hash, owner }) =>
        hash !== null && owner.kind === 'ours' && key.startsWith(`${manifest.site}/preview/`),
    );
    return serving.length;
  };
}
