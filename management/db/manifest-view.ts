import type { Manifest } from '../../gitops/manifest/schema.ts';
import type { ServiceAccountFacts } from '../../gitops/manifest/service-account.ts';

/** A manifest as the database holds it: without its encrypted secrets, which stay in git. */
export type ManifestView = Omit<Manifest, 'containerConfig' | 'serviceAccount'> & {
  readonly serviceAccount?: ServiceAccountFacts | undefined;
};

export function withoutSecrets({ containerConfig: _, serviceAccount, ...view }: Manifest): ManifestView {
  if (serviceAccount === undefined) return view;
  const { key: __, ...facts } = serviceAccount;
  return { ...view, serviceAccount: facts };
}
