import { z } from 'zod';
import type { SiteDescription } from '../../edge/verification/contract.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { forwardedPaths } from '../../plugins/server_proxy/config.ts';
import { consentOfManifest, identifiedPlaces } from './consent.ts';
import { originUrl } from './documents.ts';
import { isProven, type Manifest, provenHosts } from './schema.ts';

/** The URL of an edge hostname for browsers; `{host}` is replaced by the hostname. */
export const edgePublicUrl = z
  .string()
  .regex(/^https?:\/\/\{host\}(?::\d+)?$/, 'must be like https://{host}')
  .default('https://{host}');

/** The public addresses of an installation; `tlsPort` is the TLS port of its hosts. */
interface PublicAddresses {
  readonly edgePublicUrl: string;
  readonly tlsPort: number;
}

/** What a verification needs to check a site from outside. Pure. */
export function describeSite(
  manifest: Omit<Manifest, 'containerConfig' | 'serviceAccount'>,
  { edgePublicUrl: edgeUrl, tlsPort }: PublicAddresses,
): SiteDescription {
  const { site, hostnames, loaderToken, domains, modules, features } = manifest;
  return {
    siteId: site,
    edge: edgeUrl.replace('{host}', hostnames.edge),
    origin: originUrl(hostnames.origin, tlsPort),
    preview: originUrl(hostnames.preview, tlsPort),
    customDomains: provenHosts(manifest).map((host) => originUrl(host, tlsPort)),
    loaderToken,
    domains: domains.map(({ domain, token, webTagId, sameOrigin }, index) => ({
      domain,
      token,
      webTagId,
      active: isActiveDomain(index, features.multi_domain),
      ...(sameOrigin === undefined || !isProven(manifest, domain) ? {} : { sameOrigin: sameOrigin.path }),
    })),
    proxyPaths: forwardedPaths(modules.server_proxy),
    identifies: identifiedPlaces(consentOfManifest(manifest)),
    ...(features.cookie_restoration &&
      modules.cookie_restoration?.enabled !== false && {
        restoresBy: modules.cookie_restoration?.masterCookie === undefined ? 'id' : 'master_cookie',
        masterCookie: modules.cookie_restoration?.masterCookie,
      }),
  };
}
