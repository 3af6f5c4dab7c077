import { z } from 'zod';
import type { SiteDescription } from '../../edge/verification/contract.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { originUrl } from './documents.ts';
import type { Manifest } from './schema.ts';

/** How browsers reach an edge hostname, with `{host}` in its place. */
export const edgePublicUrl = z
  .string()
  .regex(/^https?:\/\/\{host\}(?::\d+)?$/, 'must be like https://{host}')
  .default('https://{host}');

/** Where an installation answers; `tlsPort` is the one of its hosts. */
export interface PublicAddresses {
  readonly edgePublicUrl: string;
  readonly tlsPort: number;
}

/** A site as a verification asks it from outside, pure. */
export function describeSite(
  {
    site,
    hostnames,
    customDomains,
    loaderToken,
    domains,
    modules,
    features,
  }: Omit<Manifest, 'containerConfig'>,
  { edgePublicUrl: edgeUrl, tlsPort }: PublicAddresses,
): SiteDescription {
  return {
    siteId: site,
    edge: edgeUrl.replace('{host}', hostnames.edge),
    origin: originUrl(hostnames.origin, tlsPort),
    preview: originUrl(hostnames.preview, tlsPort),
    customDomains: customDomains.map((host) => originUrl(host, tlsPort)),
    loaderToken,
    domains: domains.map(({ domain, token, webTagId }, index) => ({
      domain,
      token,
      webTagId,
      active: isActiveDomain(index, features.multi_domain),
    })),
    proxyPaths: [...(modules.server_proxy?.paths ?? [])],
  };
}
