import {
  closedGate,
  type EdgeConfigDocument,
  type KvNamespace,
  type LoaderTokenDocument,
  type RegistryDocument,
  type RegistryDomain,
  type RoutingDocument,
} from '../../plugins/document.ts';
import { isActiveDomain } from '../../plugins/multi_domain/config.ts';
import { forwardedPaths } from '../../plugins/server_proxy/config.ts';
import { consentDocument } from './consent.ts';
import { isProven, type Manifest, registrableDomain } from './schema.ts';

type SameOrigin = NonNullable<Manifest['domains'][number]['sameOrigin']>;

/** One desired KV pair. */
export interface KvDocument {
  readonly namespace: KvNamespace;
  readonly key: string;
  readonly value: RoutingDocument | RegistryDocument | LoaderTokenDocument | EdgeConfigDocument;
}

/** `originPort`: the port on which origins answer TLS (443 in production). */
export interface DocumentSettings {
  readonly originPort: number;
}

/** `https://host`, with the port unless it is 443. */
export function originUrl(host: string, port: number): string {
  return port === 443 ? `https://${host}` : `https://${host}:${port}`;
}

/** The KV documents of a site (docs/stores.md), in a stable order. Pure. */
export function kvDocuments(manifest: Manifest, settings: DocumentSettings): KvDocument[] {
  const { site: siteId, container: containerId } = manifest;
  const loaderTokens = [
    { token: manifest.loaderToken, until: undefined },
    ...manifest.previousLoaderTokens.filter(({ token }) => token !== manifest.loaderToken),
  ];
  const { features } = manifest;
  const modules = Object.fromEntries(
    Object.entries(manifest.modules).filter(([, options]) => options !== undefined),
  ) as EdgeConfigDocument['modules'];
  const { dataLayers = [] } = manifest.modules.server_proxy ?? {};
  return [
    {
      namespace: 'ROUTES',
      key: manifest.hostnames.edge,
      value: {
        version: 1,
        siteId,
        containerId,
        origin: originUrl(manifest.hostnames.origin, settings.originPort),
      },
    },
    {
      namespace: 'SITE_REGISTRY',
      key: containerId,
      value: {
        version: 1,
        siteId,
        containerId,
        domains: manifest.domains.map(({ domain, webTagId, token, sameOrigin }, index) => ({
          domain,
          webTagId,
          token,
          cookieDomain: registrableDomain(domain),
          active: isActiveDomain(index, manifest.features.multi_domain),
          ...(isProven(manifest, domain) ? {} : { unproven: true as const }),
          ...(sameOrigin === undefined || !isProven(manifest, domain)
            ? {}
            : { sameOrigin: prefixOf(sameOrigin, manifest.loaderToken) }),
        })),
        proxyPaths: forwardedPaths(manifest.modules.server_proxy),
        ...(manifest.serving === false ? { off: true as const } : {}),
        ...(dataLayers.length === 0 ? {} : { dataLayers }),
        ...closedGate({ features, modules }),
        ...consentDocument(manifest),
      },
    },
    ...loaderTokens.map(({ token, until }) => ({
      namespace: 'LOADER_TOKEN_MAP' as const,
      key: token,
      value: { version: 1 as const, containerId, ...(until === undefined ? {} : { until }) },
    })),
    {
      namespace: 'EDGE_CONFIG',
      key: containerId,
      value: {
        version: 2,
        module: 'tagyard',
        features,
        modules,
        ...consentDocument(manifest),
      },
    },
  ];
}

/** The prefix of a domain and the hashes of the tokens that its forwarder may send. */
function prefixOf({ path, forwarder }: SameOrigin, loader: string): RegistryDomain['sameOrigin'] {
  const { tokenHash, previous } = forwarder;
  const rotated = previous && { hash: previous.tokenHash, until: previous.until };
  return { path, tokens: [{ hash: tokenHash }, ...(rotated === undefined ? [] : [rotated])], loader };
}
