import { domainToUnicode } from 'node:url';
import type { Manifest } from '../../sites/manifest/schema.ts';
import type { ServiceAccountFacts } from '../../sites/manifest/service-account.ts';

/** A manifest as the database holds it: without its encrypted secrets, which stay in git. */
export type ManifestView = Omit<Manifest, 'containerConfig' | 'serviceAccount' | 'tls'> & {
  readonly tls: Pick<Manifest['tls'], 'mode' | 'others'>;
  readonly serviceAccount?: ServiceAccountFacts | undefined;
  /** The Unicode form of its international names, which searches find. */
  readonly unicodeNames?: readonly string[];
};

export function withoutSecrets({ containerConfig: _, serviceAccount, ...manifest }: Manifest): ManifestView {
  const { key: __, certificate: ___, ...tls } = manifest.tls;
  const rest = { ...manifest, tls };
  const hosts = [...rest.domains.map(({ domain }) => domain), ...rest.customDomains];
  const unicodeNames = hosts.filter((host) => host.includes('xn--')).map(domainToUnicode);
  const view = unicodeNames.length === 0 ? rest : { ...rest, unicodeNames };
  if (serviceAccount === undefined) return view;
  const { key: ____, ...facts } = serviceAccount;
  return { ...view, serviceAccount: facts };
}
