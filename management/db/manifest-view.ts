import type { Manifest } from '../../gitops/manifest/schema.ts';

/** A manifest as the database holds it: without the encrypted configuration, which stays in git. */
export type ManifestView = Omit<Manifest, 'containerConfig'>;

export function withoutConfig({ containerConfig: _, ...view }: Manifest): ManifestView {
  return view;
}
